package cuda_test

import (
	"fmt"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// TestImagesAreTheHosts gathers batches that are large enough, for enough chains, that a block has
// several images and the last block has fewer.
func TestImagesAreTheHosts(t *testing.T) {
	const examples, steps = 1009, 2
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	for _, c := range []struct{ side, batch, chains int }{{4, 1, 1}, {4, 997, 1}, {6, 311, 3}, {5, 1000, 7}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			images := make([]byte, examples*c.side*c.side)
			for i := range images {
				images[i] = byte(i * i / 3)
			}
			gathered := func(on tensor.Device) (all [][]float32) {
				b := graph.New(tensor.Float32)
				x, _ := op.Minibatch(b, op.Batch{Size: c.batch, Order: op.Shuffled}, tensor.Shape{examples, 1, c.side, c.side}, []float64{0.5}, []float64{0.25})
				b.Output("x", x)
				s := load(t, b, on, c.chains)
				for _, err := range []error{graph.Write(s, "images", 0, 0, images), s.Run(steps)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				for chain := range c.chains {
					values := make([]float32, c.batch*c.side*c.side)
					if err := graph.Read(s, "x", chain, 0, values); err != nil {
						t.Fatal(err)
					}
					all = append(all, values)
				}
				return all
			}
			want := gathered(host)
			for chain, values := range gathered(device) {
				if err := optest.Close(widen(values), widen(want[chain]), optest.Tol{}); err != nil {
					dump(t, err)
					t.Fatalf("chain %d, images of %d pixels: %v", chain, c.side*c.side, err)
				}
			}
		})
	}
}
