package cuda_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// windowsCase is a convolution followed by pooling, with kernels that a step must and must not
// have.
type windowsCase struct {
	name                                    string
	dtype                                   tensor.DType
	batch, channels, height, width, filters int
	taps, stride, padding, dilation         [2]int
	chains                                  int
	precision                               cuda.Precision
	block                                   int    // taps
	read                                    string // how the unpooled gradient is read; "" if it is not
	positive                                bool   // a ReLU before
	bias                                    bool   // only the bias's gradient is computed
	withKernels, withoutKernels             []string
}

var windowsCases = []windowsCase{
	{name: "first layer", dtype: tensor.Float32, batch: 11, channels: 1, height: 28, width: 28, filters: 40, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 2, positive: true, block: 9,
		withKernels: []string{"conv2d_windows_filter_9_f32", "sum_rows_f32"}, withoutKernels: []string{"max_places_relu_bwd_f32", "bias_bwd"}},
	{name: "groups of taps, slices", dtype: tensor.Float32, batch: 9, channels: 3, height: 13, width: 15, filters: 5, taps: [2]int{2, 4},
		stride: op.Square(1), padding: [2]int{0, 2}, dilation: op.Square(1), chains: 1, block: 27,
		withKernels: []string{"conv2d_windows_filter_27_f32", "slices_f32"}, withoutKernels: []string{"max_places_relu_bwd_f32"}},
	{name: "strides and dilation", dtype: tensor.Float64, batch: 3, channels: 2, height: 15, width: 12, filters: 33, taps: [2]int{3, 2},
		stride: [2]int{2, 1}, padding: [2]int{1, 3}, dilation: [2]int{1, 2}, chains: 2, positive: true, block: 27,
		withKernels: []string{"conv2d_windows_filter_27_f64"}, withoutKernels: []string{"max_places_relu_bwd_f64"}},
	{name: "groups of taps in float64", dtype: tensor.Float64, batch: 9, channels: 3, height: 20, width: 20, filters: 34, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 1, block: 9,
		withKernels: []string{"conv2d_windows_filter_9_f64", "sum_rows_f64"}, withoutKernels: []string{"max_places_relu_bwd_f64", "bias_bwd"}},
	{name: "only the bias", dtype: tensor.Float32, batch: 11, channels: 1, height: 28, width: 28, filters: 4, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 2, positive: true, bias: true, block: 9,
		withKernels: []string{"windows_bias_bwd_partial_f32"}, withoutKernels: []string{"max_places_relu_bwd_f32"}},
	{name: "only the bias, in float64", dtype: tensor.Float64, batch: 12, channels: 1, height: 30, width: 30, filters: 3, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 1, bias: true, block: 9,
		withKernels: []string{"windows_bias_bwd_partial_f64"}, withoutKernels: []string{"max_places_relu_bwd_f64"}},
	{name: "only the bias, of few", dtype: tensor.Float32, batch: 2, channels: 1, height: 6, width: 10, filters: 4, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 2, bias: true, block: 9,
		withKernels: []string{"windows_bias_bwd_f32"}},
	{name: "only the bias, of few in float64", dtype: tensor.Float64, batch: 2, channels: 1, height: 6, width: 10, filters: 4, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 2, positive: true, bias: true, block: 9,
		withKernels: []string{"windows_bias_bwd_f64"}},
	{name: "only the bias, of one window per plane", dtype: tensor.Float32, batch: 9, channels: 1, height: 2, width: 2, filters: 40, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 2, positive: true, bias: true, block: 9,
		withKernels: []string{"windows_bias_bwd_f32"}},
	{name: "read as it is", dtype: tensor.Float32, batch: 2, channels: 1, height: 10, width: 12, filters: 4, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 1, read: "by an op", block: 9,
		withKernels: []string{"max_places_relu_bwd_f32", "conv2d_windows_filter_9_f32"}},
	{name: "an output", dtype: tensor.Float32, batch: 2, channels: 1, height: 10, width: 12, filters: 4, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 2, read: "after the step", block: 9,
		withKernels: []string{"max_places_relu_bwd_f32"}},
	{name: "first layer on tensor cores", dtype: tensor.Float32, batch: 11, channels: 1, height: 28, width: 28, filters: 40, taps: op.Square(5),
		stride: op.Square(1), padding: op.Square(2), dilation: op.Square(1), chains: 2, precision: cuda.BF16, positive: true, block: 32,
		withKernels: []string{"conv2d_windows_pool_bf16", "conv2d_windows_filter_bf16"}, withoutKernels: []string{"max_places_relu_bwd_f32"}},
	{name: "in tf32", dtype: tensor.Float32, batch: 11, channels: 1, height: 28, width: 28, filters: 72, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 1, precision: cuda.TF32, block: 32,
		withKernels: []string{"conv2d_windows_pool_tf32", "conv2d_windows_filter_tf32"}, withoutKernels: []string{"max_places_relu_bwd_f32"}},
	{name: "few channels, strides and dilation on tensor cores", dtype: tensor.Float32, batch: 9, channels: 2, height: 57, width: 58, filters: 70,
		taps: [2]int{3, 3}, stride: [2]int{2, 1}, padding: [2]int{0, 1}, dilation: [2]int{1, 2}, chains: 2, precision: cuda.BF16, block: 32,
		withKernels: []string{"conv2d_windows_pool_bf16", "conv2d_windows_filter_bf16"}},
	{name: "few channels, strides and dilation in tf32", dtype: tensor.Float32, batch: 5, channels: 3, height: 28, width: 72, filters: 5,
		taps: [2]int{4, 2}, stride: [2]int{1, 2}, padding: [2]int{3, 0}, dilation: [2]int{2, 1}, chains: 1, precision: cuda.TF32, positive: true, block: 32,
		withKernels: []string{"conv2d_windows_pool_tf32", "conv2d_windows_filter_tf32"}},
	{name: "channels, strides and dilation on tensor cores", dtype: tensor.Float32, batch: 5, channels: 3, height: 57, width: 38, filters: 33, taps: [2]int{3, 5},
		stride: [2]int{2, 1}, padding: [2]int{0, 3}, dilation: [2]int{1, 2}, chains: 2, precision: cuda.BF16, block: 32,
		withKernels: []string{"conv2d_windows_filter_bf16"}},
	{name: "channels, strides and dilation in tf32", dtype: tensor.Float32, batch: 5, channels: 3, height: 28, width: 72, filters: 31, taps: [2]int{4, 3},
		stride: [2]int{1, 2}, padding: [2]int{3, 1}, dilation: [2]int{2, 1}, chains: 1, precision: cuda.TF32, positive: true, block: 32,
		withKernels: []string{"conv2d_windows_filter_tf32"}},
	{name: "no fours of windows", dtype: tensor.Float32, batch: 3, channels: 1, height: 14, width: 14, filters: 4, taps: op.Square(3),
		stride: op.Square(1), padding: op.Square(1), dilation: op.Square(1), chains: 1, precision: cuda.BF16, block: 9,
		withKernels: []string{"conv2d_windows_filter_9_f32"}},
	{name: "copies", dtype: tensor.Float32, batch: 3, channels: 12, height: 8, width: 6, filters: 33, taps: op.Square(3), stride: op.Square(1),
		padding: op.Square(1), dilation: op.Square(1), chains: 2, precision: cuda.BF16, positive: true,
		withKernels: []string{"nhwc_pack_windows_bf16", "sum_rows_f32"}, withoutKernels: []string{"max_places_relu_bwd_f32", "bias_bwd"}},
}

// TestWindows compares the gradients of pooled convolutions, on numbers whose sums are exact, with
// the host's, and with those of separate launches, which read the unpooled gradient. All bits must
// be the same.
func TestWindows(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	for _, c := range testenv.Some(t, 3, windowsCases) {
		t.Run(c.name, func(t *testing.T) {
			needs(t, cuda.WindowsVariable)
			if c.block == 0 {
				needs(t, cuda.PackedVariable)
				plan.OnlyPacked(t, c.precision, len(plan.PackedTiles(c.precision))-1)
			} else {
				plan.OnlyWindows(t, c.block)
			}
			program, sizes := c.program(t)
			device := &catching{Device: fewMultiprocessors(t, cuda.Options{Precision: c.precision})}
			want, _ := c.results(t, program, sizes, host)
			got, own := c.results(t, program, sizes, device)
			symbols := strings.Join(cuda.Symbols(device.runner), " ")
			for _, name := range c.withKernels {
				if !strings.Contains(symbols, name) {
					t.Errorf("no %s among %s", name, symbols)
				}
			}
			for _, name := range c.withoutKernels {
				if strings.Contains(symbols, name) {
					t.Errorf("there is %s among %s", name, symbols)
				}
			}
			sameAs(t, ", single launches", own, want)
			sameAs(t, "", got, want)
		})
	}
}

// results returns the outputs after two steps, and after one more step whose launches run on their
// own.
func (c windowsCase) results(t *testing.T, program *graph.Program, sizes map[string]int, device tensor.Device) (steps, own [][]float64) {
	t.Helper()
	session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: c.chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := session.Run(2); err != nil {
		t.Fatal(err)
	}
	for chain := range c.chains {
		steps = append(steps, outputs(t, session, chain, sizes))
	}
	if loaded, is := device.(*catching); is {
		for chain := range c.chains {
			if err := loaded.runner.Step(chain, func(int) error { return nil }); err != nil {
				t.Fatal(err)
			}
			own = append(own, outputs(t, session, chain, sizes))
		}
	}
	return steps, own
}

// program outputs the gradients of a weighted sum of the windows' maxima with respect to filter and
// bias and, if c.read is set, the unpooled gradient.
func (c windowsCase) program(t *testing.T) (*graph.Program, map[string]int) {
	t.Helper()
	b, sizes := graph.New(c.dtype), map[string]int{}
	state := func(name string, begin int, shape ...int) *graph.Node {
		return b.State(name, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = float64((begin+i*i+i/7+int(chain)*i)%8-4) / 4
			}
		}, shape...)
	}
	output := func(name string, n *graph.Node) {
		b.Output(name, n)
		sizes[name] = graph.ShapeOf(n).Elements()
	}
	x, w := state("x", 1, c.batch, c.channels, c.height, c.width), state("w", 2, c.filters, c.channels, c.taps[0], c.taps[1])
	bias := state("bias", 3, c.filters)
	y := b.Apply(op.BiasAdd{}, b.Apply(op.Conv2D{Stride: c.stride, Padding: c.padding, Dilation: c.dilation}, x, w), bias)
	if c.positive {
		y = b.Apply(op.ReLU{}, y)
	}
	z := b.Apply(op.MaxPool2D{Window: op.Square(2), Stride: op.Square(2)}, y)
	output("z", b.Apply(op.Add{}, z, z)) // if z were an output itself, it would not be pooled in scratch memory
	loss := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, z, state("weights", 4, graph.ShapeOf(z)...)))
	wanted := []*graph.Node{w, bias}
	if c.block == 0 {
		wanted = append(wanted, x)
	}
	if c.bias {
		wanted = wanted[1:]
	}
	if c.read != "" {
		wanted = append(wanted, y)
	}
	for i, g := range b.Gradients(loss, wanted...) {
		if wanted[i] == y && c.read == "by an op" {
			g = b.Apply(op.Add{}, g, g)
		}
		output(fmt.Sprint("gradient", i), g)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program, sizes
}
