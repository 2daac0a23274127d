package cuda_test

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

// TestAhead: in a run of many steps, minibatches are gathered and augmented before the preceding
// step has ended. The bits are the same as for steps that run one by one, and with AheadVariable
// off.
func TestAhead(t *testing.T) {
	needs(t, cuda.AheadVariable, cuda.OrderVariable, cuda.GraphsVariable)
	const steps, chains = 37, 2
	b := graph.New(tensor.Float32)
	x, y := op.Minibatch(b, op.Batch{Size: trainBatch, Order: op.Shuffled}, tensor.Shape{trainImages, 1, 6, 6}, []float64{0.5}, []float64{0.5})
	x = b.Apply(op.Augment{Flip: true, Shift: 1, Stream: 77}, x, b.Header())
	network, err := layers.New("mlp-10", 10)
	if err != nil {
		t.Fatal(err)
	}
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), y)
	if err := trainings["sgld"](b, loss, trainImages); err != nil {
		t.Fatal(err)
	}
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	results := func(t *testing.T, together int, ahead []string) (values []float32) {
		device := &catching{Device: cudatest.GPU(t, cuda.Options{})}
		session, err := program.Load(device, graph.LoadOptions{Seed: 3, Chains: chains})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if got := cuda.AheadSymbols(device.runner); !slices.Equal(got, ahead) {
			t.Errorf("ahead are %v, want %v", got, ahead)
		}
		images, labels := make([]byte, trainImages*36), make([]int32, trainImages)
		for i := range images {
			images[i] = byte(i * i / 7)
		}
		for i := range labels {
			labels[i] = int32(i % 10)
		}
		for _, err := range []error{graph.Write(session, "images", 0, 0, images), graph.Write(session, "labels", 0, 0, labels)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for at := 0; at < steps; at += together {
			if err := session.Run(min(together, steps-at)); err != nil {
				t.Fatal(err)
			}
		}
		for chain := range chains {
			for step := range steps {
				values = append(values, float32(session.Metric(chain, "loss", uint64(step))))
			}
			for _, p := range program.Parameters() {
				own := make([]float32, p.Shape.Elements())
				if err := session.ReadFloats(p.Name, chain, own); err != nil {
					t.Fatal(err)
				}
				values = append(values, own...)
			}
		}
		return values
	}
	calls := []string{"gather_images_f32", "gather_labels_f32", "augment_fwd_f32"}
	var want []float32
	for _, c := range []struct {
		name, variable string
		together       int
		ahead          []string
	}{{"together", "", steps, calls}, {"one by one", "", 1, calls}, {"not ahead", "off", steps, nil}} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				switchTo(t, cuda.AheadVariable, c.variable)
			}
			got := results(t, c.together, c.ahead)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Error("other bits than steps that run together")
			}
		})
	}
}
