package cuda_test

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestCopiesOfMaxima: a pooled convolution of few channels writes the packed copy that the next
// convolution reads, with its border. The results have the same bits as on the host, where numbers
// and sums are exact, and as if launches run on their own, where a separate kernel makes the copy.
// If only the copy is read, a step does not write the maxima.
func TestCopiesOfMaxima(t *testing.T) {
	needs(t, cuda.WindowsVariable, cuda.PackedVariable)
	host := tensor.NewHost(1)
	defer host.Close()
	for _, c := range []struct {
		name            string
		precision       cuda.Precision
		filters, chains int
		padding         [2]int
		after           bool // the ReLU comes after the pooling
		groups          bool // the next convolution uses wgmma, whose copies are in chunks
	}{
		{"half a line", cuda.BF16, 20, 2, [2]int{1, 1}, false, false},
		{"two blocks", cuda.BF16, 70, 1, [2]int{2, 0}, true, false},
		{"chunks", cuda.BF16, 70, 2, [2]int{1, 1}, false, true},
		{"three blocks in tf32", cuda.TF32, 70, 1, [2]int{0, 1}, false, false},
		{"a block in tf32", cuda.TF32, 20, 2, [2]int{1, 1}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpu, packs := fewMultiprocessors(t, cuda.Options{Precision: c.precision}), "nhwc_pack_"+string(c.precision)
			if c.groups {
				needs(t, cuda.WGMMAVariable)
				needGroups(t, gpu)
				packs = "nhwc_pack_chunks_" + string(c.precision)
				plan.OnlyWGMMA(t, 0)
			} else {
				plan.OnlyPacked(t, c.precision, len(plan.PackedTiles(c.precision))-1)
			}
			plan.OnlyForwardOnWindows(t)
			b, sizes := graph.New(tensor.Float32), map[string]int{}
			state := func(name string, low, count int, shape ...int) *graph.Node {
				return b.State(name, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
					for i := range values {
						values[i] = float64(low + (i*i+i/7+int(chain)*i)%count)
					}
				}, shape...)
			}
			convolve := func(x, w *graph.Node, padding [2]int) *graph.Node {
				return b.Apply(op.Conv2D{Stride: op.Square(1), Padding: padding, Dilation: op.Square(1)}, x, w)
			}
			w, next := state("w", -1, 3, c.filters, 1, 3, 3), state("next", -1, 3, 5, c.filters, 3, 2)
			y := b.Apply(op.BiasAdd{}, convolve(state("x", 0, 2, 3, 1, 12, 16), w, op.Square(1)), state("bias", -2, 3, c.filters))
			pool := op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}
			if c.after {
				y = b.Apply(op.ReLU{}, b.Apply(pool, y))
			} else {
				y = b.Apply(pool, b.Apply(op.ReLU{}, y))
			}
			z := convolve(y, next, c.padding)
			for i, n := range append(b.Gradients(b.Apply(op.Sum{}, z), w, next), b.Apply(op.Add{}, z, z)) {
				name := string(rune('a' + i))
				b.Output(name, n)
				sizes[name] = graph.ShapeOf(n).Elements()
			}
			program, err := b.Compile()
			if err != nil {
				t.Fatal(err)
			}
			two := windowsCase{chains: c.chains}
			device := &catching{Device: gpu}
			want, _ := two.results(t, program, sizes, host)
			got, own := two.results(t, program, sizes, device)
			symbols := strings.Join(cuda.Symbols(device.runner), " ")
			copies := strings.Count(symbols, packs)
			first := "conv2d_windows_pack_" // nobody reads the maxima otherwise
			if c.after {
				first = "conv2d_windows_pool_" // the ReLU's gradient does
			}
			if is, groups := strings.Contains(symbols, first+string(c.precision)), strings.Contains(symbols, "conv2d_nhwc_group"); !is ||
				copies != 3 || groups != c.groups {
				t.Errorf("%d copies by kernels of their own, want those of the filter, turned too, and of the gradient, and %s, among %s", copies, first, symbols)
			}
			sameAs(t, ", single launches", own, want)
			sameAs(t, "", got, want)
		})
	}
}
