package samples_test

import (
	"testing"

	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// sized is a host that notes what its workloads take.
type sized struct {
	*tensor.Host
	bytes int
}

func (s *sized) Load(w tensor.Workload) (tensor.Runner, error) {
	size, err := s.Size(w)
	if err != nil {
		return nil, err
	}
	s.bytes += size.Host
	return s.Host.Load(w)
}

// TestSizes compares the estimates with what is loaded. These may have more, in Go's heap.
func TestSizes(t *testing.T) {
	const n, batch = 50, 8
	images := trial.PredictorImages(n)
	shape := images
	shape.Pixels = nil
	labels := make([]int32, n)
	for name, c := range map[string]struct {
		size func(d tensor.Device) (samples.Size, error)
		load func(d tensor.Device) (interface{ Close() error }, error)
		more int // bytes in Go's heap
	}{
		"SamplePredictor": {
			func(d tensor.Device) (samples.Size, error) {
				return samples.PredictionSize(d, shape, n, batch, trial.Network)
			},
			func(d tensor.Device) (interface{ Close() error }, error) {
				return samples.NewSamplePredictor(d, tensor.Float32, images, batch, trial.Network)
			}, 0,
		},
		"InputGradient": {
			func(d tensor.Device) (samples.Size, error) {
				return samples.GradientSize(d, shape, n, batch, trial.Network)
			},
			func(d tensor.Device) (interface{ Close() error }, error) {
				return samples.NewInputGradient(d, tensor.Float32, images, labels, batch, trial.Network)
			}, 12 * len(images.Pixels),
		},
		"EnsemblePredictor": {
			func(d tensor.Device) (samples.Size, error) {
				return samples.EnsembleSize(d, shape, batch, 4*batch, 5, trial.Network)
			},
			func(d tensor.Device) (interface{ Close() error }, error) {
				return samples.NewEnsemblePredictor(d, shape, batch, 4*batch, 5, trial.Network)
			}, 0,
		},
	} {
		host := &sized{Host: tensor.NewHost(2)}
		size, err := c.size(host)
		if err != nil || size.Classes < 2 || size.Weights < 1 {
			t.Fatalf("%s: %+v, %v", name, size, err)
		}
		p, err := c.load(host)
		if err != nil {
			t.Fatal(err)
		}
		const slack = 64 << 10 // initial values, a few numbers for each image
		if size.Host < host.bytes+c.more || size.Host > host.bytes+c.more+slack {
			t.Errorf("%s: the size is %d bytes, %d are loaded and %d in the heap", name, size.Host, host.bytes, c.more)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A batch of no images is an error.
func TestSizeOfEmptyBatches(t *testing.T) {
	host, shape := tensor.NewHost(1), trial.PredictorImages(1)
	defer host.Close()
	if _, err := samples.EnsembleSize(host, shape, 0, 4, 5, trial.Network); err == nil {
		t.Error("ensemble: no error")
	}
	if _, err := samples.PredictionSize(host, shape, 3, 0, trial.Network); err == nil {
		t.Error("prediction: no error")
	}
}
