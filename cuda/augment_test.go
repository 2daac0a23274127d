package cuda_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// TestAugmentedImagesAreTheHosts augments images on both devices. All bits must be the same,
// because every operation is rounded separately. There are enough batches and chains for several
// images per block.
func TestAugmentedImagesAreTheHosts(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	host := tensor.NewHost(1)
	defer host.Close()
	for _, c := range []struct {
		g             op.Augment
		shape         tensor.Shape
		chains, steps int
	}{
		{op.Augment{Flip: true, Shift: 2, Erase: 0.5}, tensor.Shape{311, 1, 6, 5}, 3, 2},
		{op.Augment{Rotation: 15}, tensor.Shape{5, 2, 9, 12}, 1, 3},
		{op.Augment{Flip: true, Shift: 3, Rotation: 180, Erase: 0.3}, tensor.Shape{997, 3, 4, 7}, 2, 1},
	} {
		c.g.Stream = 1
		t.Run(fmt.Sprintf("%+v", c.g), func(t *testing.T) {
			augmented := func(on tensor.Device) (all [][]float32) {
				b := graph.New(tensor.Float32)
				x := b.Data("x", tensor.Float32, c.shape...)
				b.Output("y", b.Apply(c.g, x, b.Header()))
				s := load(t, b, on, c.chains)
				values := make([]float32, c.shape.Elements())
				for i := range values {
					values[i] = float32(math.Sin(float64(i * i)))
				}
				for _, err := range []error{graph.Write(s, "x", 0, 0, values), s.Run(c.steps)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				for chain := range c.chains {
					y := make([]float32, len(values))
					if err := graph.Read(s, "y", chain, 0, y); err != nil {
						t.Fatal(err)
					}
					all = append(all, y)
				}
				return all
			}
			want := augmented(host)
			for chain, values := range augmented(device) {
				if err := optest.Same(widen(values), widen(want[chain])); err != nil {
					dump(t, err)
					t.Fatalf("chain %d, shape %v: %v", chain, c.shape, err)
				}
			}
		})
	}
}
