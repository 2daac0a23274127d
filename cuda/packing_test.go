package cuda_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// packedCase is a convolution with bias that is computed from packed copies, in all directions.
type packedCase struct {
	name                                    string
	batch, channels, height, width, filters int
	taps, stride, padding, dilation         [2]int
	pooled                                  bool
	clipped                                 bool // by ReLU6 instead of a ReLU
	rectified                               bool // the image is the output of a ReLU
	first                                   bool // only the smallest tile
}

var packedCases = []packedCase{
	{name: "padding", batch: 2, channels: 5, height: 7, width: 10, filters: 67, taps: [2]int{2, 3}, stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1)},
	{name: "pooled", batch: 3, channels: 12, height: 8, width: 6, filters: 33, taps: [2]int{3, 3}, stride: op.Square(1), padding: op.Square(1),
		dilation: op.Square(1), pooled: true},
	{name: "blocks of channels", batch: 2, channels: 67, height: 5, width: 6, filters: 70, taps: [2]int{2, 3}, stride: op.Square(1), padding: op.Square(0),
		dilation: op.Square(1), first: true, clipped: true},
	{name: "more padding than taps", batch: 2, channels: 3, height: 4, width: 5, filters: 4, taps: [2]int{2, 1}, stride: op.Square(1),
		padding: [2]int{3, 1}, dilation: op.Square(1), first: true},
	{name: "strides and dilation", batch: 3, channels: 3, height: 11, width: 7, filters: 29, taps: [2]int{3, 2}, stride: [2]int{2, 1},
		padding: [2]int{0, 2}, dilation: [2]int{1, 2}, first: true},
	{name: "a tap, rows that no stride meets", batch: 9, channels: 2, height: 6, width: 5, filters: 3, taps: [2]int{1, 1}, stride: [2]int{2, 3},
		padding: [2]int{0, 0}, dilation: op.Square(1), first: true},
}

// program outputs the convolution, and the gradients of its weighted sum with respect to image,
// filter and bias. fill gives the values of the operands.
func (c packedCase) program(t *testing.T, fill func(i int) float64) (*graph.Program, map[string]int) {
	t.Helper()
	b, sizes := graph.New(tensor.Float32), map[string]int{}
	state := func(name string, begin int, shape ...int) *graph.Node {
		return b.State(name, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = fill(begin + i*i + i/7 + int(chain)*i)
			}
		}, shape...)
	}
	output := func(name string, n *graph.Node) {
		b.Output(name, n)
		sizes[name] = graph.ShapeOf(n).Elements()
	}
	x := state("x", 1, c.batch, c.channels, c.height, c.width)
	w, bias := state("w", 2, c.filters, c.channels, c.taps[0], c.taps[1]), state("bias", 3, c.filters)
	var activation graph.Op = op.ReLU{}
	if c.clipped {
		activation = op.Clip{High: 6}
	}
	image := x
	if c.rectified {
		image = b.Apply(op.ReLU{}, x)
	}
	y := b.Apply(activation, b.Apply(op.BiasAdd{}, b.Apply(op.Conv2D{Stride: c.stride, Padding: c.padding, Dilation: c.dilation}, image, w), bias))
	if c.pooled {
		y = b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, y)
	}
	output("y", b.Apply(op.Add{}, y, y)) // if y were an output itself, it would not be pooled in scratch memory
	loss := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, y, state("weights", 4, graph.ShapeOf(y)...)))
	for i, g := range b.Gradients(loss, x, w, bias) {
		output(fmt.Sprint("gradient", i), g)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program, sizes
}

// results returns the outputs of some chains on a device and, if that is a GPU, the kernels of a
// step.
func (c packedCase) results(t *testing.T, device tensor.Device, chains int, fill func(i int) float64) (all [][]float64, symbols string) {
	t.Helper()
	program, sizes := c.program(t, fill)
	loaded := &catching{Device: device}
	session, err := program.Load(loaded, graph.LoadOptions{Seed: 1, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, host := device.(*tensor.Host); !host {
		symbols = strings.Join(cuda.Symbols(loaded.runner), " ")
	}
	for range chains { // in the second step, memory has the contents that the first one left
		if err := session.Run(1); err != nil {
			t.Fatal(err)
		}
	}
	for chain := range chains {
		all = append(all, outputs(t, session, chain, sizes))
	}
	return all, symbols
}

// launched returns the outputs of one chain whose launches run on their own, each with separate
// copies.
func (c packedCase) launched(t *testing.T, device tensor.Device, fill func(i int) float64) []float64 {
	t.Helper()
	program, sizes := c.program(t, fill)
	loaded := &catching{Device: device}
	session, err := program.Load(loaded, graph.LoadOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := loaded.runner.Step(0, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return outputs(t, session, 0, sizes)
}

// TestPackedConvolutions compares convolutions on packed copies with the host's, on numbers that
// every precision can represent and whose sums are exact: all bits must be the same. Numbers that
// are rounded must give the results of convolutions without packing, up to the order of sums, and
// the same bits if launches share no copies.
func TestPackedConvolutions(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	rounded := func(i int) float64 { return math.Sin(float64(i % 9973)) }
	needs(t, cuda.PackedVariable)
	host := tensor.NewHost(1)
	defer host.Close()
	for _, precision := range []cuda.Precision{cuda.TF32, cuda.BF16} {
		for _, c := range packedCases {
			t.Run(fmt.Sprintf("%s/%s", precision, c.name), func(t *testing.T) {
				device := cudatest.GPU(t, cuda.Options{Precision: precision})
				want, _ := c.results(t, host, 2, exact)
				tiles := plan.PackedTiles(precision)
				var plain [][]float64
				t.Run("without", func(t *testing.T) {
					plan.OnlyPacked(t, precision, -1)
					var symbols string
					if plain, symbols = c.results(t, device, 1, rounded); strings.Contains(symbols, "nhwc") {
						t.Errorf("without packing there are %s", symbols)
					}
				})
				for number := range tiles {
					if (c.first || !testenv.All(t)) && number+1 != len(tiles) {
						continue
					}
					t.Run(fmt.Sprint(number), func(t *testing.T) {
						plan.OnlyPacked(t, precision, number)
						chains := 1
						if number+1 == len(tiles) {
							got, _ := c.results(t, device, 1, rounded)
							closeTo(t, got, plain, 2e-5)
							closeTo(t, [][]float64{c.launched(t, device, rounded)}, got, 0)
							chains = 2
						}
						got, symbols := c.results(t, device, chains, exact)
						c.check(t, symbols, precision)
						closeTo(t, got, want, 0)
					})
				}
			})
		}
	}
}

// check checks a step's kernels. The filter's gradient must read copies that other launches made.
func (c packedCase) check(t *testing.T, symbols string, precision cuda.Precision) {
	t.Helper()
	packs, wanted := 4, "conv2d_nhwc_filter_"+string(precision)
	if c.stride != op.Square(1) {
		packs = 5 // the copy for the image's gradient has zeros between the elements
		if !strings.Contains(symbols, "nhwc_pack_spread_") {
			t.Errorf("there is no copy of a gradient with zeros in between among %s", symbols)
		}
	}
	if c.padding[0] >= c.taps[0] {
		packs = 5 // the copy for the image's gradient lacks a part
	}
	if n := strings.Count(symbols, "nhwc_pack"); n != packs {
		t.Errorf("%d copies are made, want %d: %s", n, packs, symbols)
	}
	if !strings.Contains(symbols, wanted) {
		t.Errorf("there is no %s among %s", wanted, symbols)
	}
}
