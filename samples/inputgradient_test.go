package samples_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// TestInputGradient compares with central differences of the average's -log p, in float64; batch
// sizes do not divide the number of images.
func TestInputGradient(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	images := trial.PredictorImages(11)
	labels := trial.SomeLabels(11, 9)
	for i, v := range images.Pixels {
		images.Pixels[i] = min(max(v, 1), 254)
	}
	drawn := []samples.Sample{networkSample(t, 3), networkSample(t, 25), networkSample(t, 60)}
	for i := range drawn {
		drawn[i].Weight = []float64{1, 0.5, 2}[i]
	}
	g, err := samples.NewInputGradient(host, tensor.Float64, images, labels, 4, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, s := range drawn {
		if err := g.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	got := g.Gradient()
	loss := func(pixels []byte, label int32) float64 {
		p, total := 0.0, 0.0
		for _, s := range drawn {
			parameters := map[string][]float64{}
			for _, q := range s.Parameters {
				parameters[q.Name] = tensor.Convert[float64](q.Values)
			}
			p += s.Weight * trial.SoftmaxOf(parameters, pixels)[label]
			total += s.Weight
		}
		return -math.Log(p / total)
	}
	scale, wrong := 0.0, 0
	for _, v := range got {
		scale = math.Max(scale, math.Abs(v))
	}
	for i := range images.Len() {
		pixels := append([]byte{}, images.Pixels[i*trial.ImageSize:(i+1)*trial.ImageSize]...)
		for j := range pixels {
			pixels[j]++
			above := loss(pixels, labels[i])
			pixels[j] -= 2
			want := (above - loss(pixels, labels[i])) * 255 / 2
			pixels[j]++
			if !(math.Abs(got[i*trial.ImageSize+j]-want) < 1e-3*scale) {
				wrong++
			}
		}
	}
	// A kink of a hidden unit between the two points spoils a difference.
	if wrong > len(got)/50 {
		t.Errorf("%d of %d gradients differ from central differences by more than a thousandth of the largest, %g", wrong, len(got), scale)
	}
}

func TestInputGradientRefuses(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	images := trial.PredictorImages(6)
	noImages := images
	noImages.Pixels = nil
	for name, c := range map[string]struct {
		images samples.Images
		labels []int32
		batch  int
	}{
		"no images":        {noImages, nil, 2},
		"a label too few":  {images, make([]int32, 5), 2},
		"an unknown label": {images, []int32{0, 1, trial.NetworkLabels, 0, 0, 0}, 2},
		"a batch of 0":     {images, make([]int32, 6), 0},
	} {
		if g, err := samples.NewInputGradient(host, tensor.Float32, c.images, c.labels, c.batch, trial.Network); err == nil {
			t.Errorf("%s: no error", name)
			g.Close()
		}
	}
}
