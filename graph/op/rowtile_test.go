package op

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// strict is a host that runs launches one by one. It runs launches with a RowTile on a few rows at
// a time, and first overwrites the other rows of their buffers with NaN.
type strict struct {
	*tensor.Host
	kernels map[string]bool // that it has found
	failed  error
}

func (s *strict) Load(w tensor.Workload) (tensor.Runner, error) {
	w.Launches = append([]tensor.Launch(nil), w.Launches...)
	for i := range w.Launches {
		l := &w.Launches[i]
		rowTile := l.Host.RowTile
		if rowTile.Rows == 0 {
			continue
		}
		s.kernels[l.Kernel] = true
		l.Host.RowTile = tensor.RowTile{}
		l.Host.Phases = append([]tensor.Phase(nil), l.Host.Phases...)
		rows, parts := (rowTile.Rows/5/rowTile.Unit+1)*rowTile.Unit, rowTile.Parts
		if parts == nil {
			parts = []int{0, rowTile.Rows}
		}
		var tiles [][2]int
		for i, lo := range parts[:len(parts)-1] {
			for ; lo < parts[i+1]; lo += rows {
				tiles = append(tiles, [2]int{lo, min(lo+rows, parts[i+1])})
			}
		}
		l.Host.Phases[rowTile.Phase] = tensor.Phase{Tiles: len(tiles), Run: func(a *tensor.Args, part int) {
			lo, hi := tiles[part][0], tiles[part][1]
			var spoilt, kept [][]byte
			for j, argument := range l.Arguments {
				again := func(earlier tensor.Argument) bool { return earlier.Buffer == argument.Buffer }
				if argument.Buffer == nil || !rowTile.Owns(j, argument.Buffer) || slices.ContainsFunc(l.Arguments[:j], again) {
					continue
				}
				all := bytesOf(a, j, argument.Buffer.DType)
				for _, part := range [][]byte{all[:len(all)/rowTile.Rows*lo], all[len(all)/rowTile.Rows*hi:]} {
					spoilt, kept = append(spoilt, part), append(kept, slices.Clone(part))
					for k := range part {
						part[k] = spoiling
					}
				}
			}
			rowTile.Handle(a, lo, hi)
			for j, part := range spoilt {
				if slices.ContainsFunc(part, func(v byte) bool { return v != spoiling }) {
					s.failed = errors.Errorf("%s: rows %d to %d write outside their row tile", l.Kernel, lo, hi)
				}
				copy(part, kept[j])
			}
		}}
	}
	return s.Host.Load(w)
}

// spoiling is each byte of a NaN.
const spoiling = 0xff

func bytesOf(a *tensor.Args, argument int, dtype tensor.DType) []byte {
	if dtype == tensor.Uint8 {
		return tensor.Slice[uint8](a, argument)
	}
	return tensor.Bytes(tensor.Slice[float32](a, argument))
}

// TestRowTiles: launches with a RowTile keep to its rows, and launches that are fused over row
// tiles compute the same as one by one.
func TestRowTiles(t *testing.T) {
	checkRowTiles(t, func(b *graph.Builder, parameter func(shape ...int) *graph.Node) *graph.Node {
		const channels = 6
		image := parameter(5, channels, 17, 19) // more than one tile, and not a whole number of them
		x := image
		x = b.Apply(BiasAdd{}, x, parameter(channels))
		x = b.Apply(FilterResponseNorm{Epsilon: 1e-6}, x, parameter(channels), parameter(channels))
		x = b.Apply(SiLU{}, b.Apply(Threshold{}, x, parameter(channels)))
		x = b.Apply(ReLU{}, b.Apply(Multiply{}, b.Apply(Add{}, x, image), image))
		x = b.Apply(ReLU{}, b.Apply(Add{}, x, b.Apply(Multiply{}, x, image)))
		x = b.Apply(Multiply{}, parameter(5, channels, 1, 1), x) // a factor for each plane
		x = b.Apply(GroupNorm{Groups: 3, Epsilon: 1e-5}, x, parameter(channels), parameter(channels))
		return b.Apply(SiLU{}, b.Apply(Threshold{}, b.Apply(Tanh{}, x), parameter(channels)))
	}, "bias_bwd", "normalize_fwd", "normalize_threshold_fwd", "normalize_bwd_input", "normalize_bwd_scale", "threshold_fwd", "threshold_bwd",
		"threshold_bwd_bound", "normalize_gradients", "silu_fwd", "silu_bwd", "tanh_fwd", "tanh_bwd",
		"relu_fwd", "relu_bwd", "relu_bwd_sum", "add_fwd", "add_relu_fwd", "multiply_fwd",
		"multiply_broadcast_fwd", "fan_in_fwd")
}

// A product with few factors is divided among threads, too, although each factor is for many
// elements.
func TestTilesOfFewPlanes(t *testing.T) {
	for _, shape := range []tensor.Shape{{}, {1, 3, 1, 1}, {3, 1, 1}} {
		b := graph.New(tensor.Float32)
		b.Output("y", b.Apply(Multiply{}, b.Parameter("x", nil, 1, 3, 256, 256), b.Parameter("factors", nil, shape...)))
		p, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		device := &tiled{Host: tensor.NewHost(1)}
		s, err := p.Load(device, graph.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		device.Close()
		if device.tiles["multiply_broadcast_fwd_f32"] < 16 {
			t.Errorf("a product with factors %v has %d tiles, want at least 16", shape, device.tiles["multiply_broadcast_fwd_f32"])
		}
	}
}

// tiled is a host that counts the tiles of each kernel.
type tiled struct {
	*tensor.Host
	tiles map[string]int
}

func (d *tiled) Load(w tensor.Workload) (tensor.Runner, error) {
	d.tiles = map[string]int{}
	for _, l := range w.Launches {
		d.tiles[l.Kernel] += l.Host.Phases[0].Tiles
	}
	return d.Host.Load(w)
}

// TestRowTilesOfImages: the same of convolutions, by each of their algorithms, and of poolings.
func TestRowTilesOfImages(t *testing.T) {
	one := Square(1)
	checkRowTiles(t, func(b *graph.Builder, parameter func(shape ...int) *graph.Node) *graph.Node {
		half := MaxPool2D{Window: Square(2), Stride: Square(2)}
		x := b.Apply(half, parameter(35, 3, 38, 36)) // windows that fill the image
		for _, c := range []struct{ in, out, taps, stride int }{{3, 16, 3, 1}, {16, 16, 3, 1}, {16, 20, 3, 2}, {20, 32, 5, 1}, {32, 7, 1, 1}} {
			conv := Conv2D{Stride: Square(c.stride), Padding: Square(c.taps / 2), Dilation: one}
			x = b.Apply(conv, x, parameter(c.out, c.in, c.taps, c.taps))
			x = b.Apply(ReLU{}, b.Apply(BiasAdd{}, x, parameter(c.out)))
		}
		x = b.Apply(half, x) // and some that do not
		return b.Apply(AveragePool2D{Window: Square(3), Stride: one, Padding: one}, x)
	}, "conv2d_bias_fwd", "conv2d_bwd_input", "conv2d_bwd_filter", "max_pool_fwd", "max_places_fwd", "max_places_bwd",
		"max_pool_relu_bwd", "average_pool_fwd", "average_pool_bwd")
}

// checkRowTiles checks that kernels of these names keep to rows in a graph, and that it computes
// the same where launches are run together.
func checkRowTiles(t *testing.T, graphOf func(b *graph.Builder, parameter func(shape ...int) *graph.Node) *graph.Node, names ...string) {
	t.Helper()
	build := func(device tensor.Device) (all [][]float64) {
		b := graph.New(tensor.Float32)
		var parameters []*graph.Node
		x := graphOf(b, func(shape ...int) *graph.Node {
			p := b.Parameter(fmt.Sprint("p", len(parameters)), initial(1), shape...)
			parameters = append(parameters, p)
			return p
		})
		gradients := b.Gradients(b.Apply(Sum{}, b.Apply(Multiply{}, x, x)), parameters...)
		for i, g := range append(gradients, x) {
			b.Output(fmt.Sprint("o", i), g)
		}
		p, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		defer device.Close()
		s, err := p.Load(device, graph.LoadOptions{Seed: trialSeed})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Run(2); err != nil {
			t.Fatal(err)
		}
		for i, g := range append(gradients, x) {
			all = append(all, readOutput(t, s, tensor.Float32, fmt.Sprint("o", i), 0, graph.ShapeOf(g)))
		}
		return all
	}
	alone := &strict{Host: tensor.NewHost(1), kernels: map[string]bool{}}
	want := build(alone)
	if alone.failed != nil {
		t.Error(alone.failed)
	}
	for _, name := range names {
		if !alone.kernels[name+"_f32"] {
			t.Errorf("%s does not keep to row tiles; those that do are %v", name, alone.kernels)
		}
	}
	for _, threads := range []int{1, 3} {
		for i, got := range build(tensor.NewHost(threads)) {
			same(t, fmt.Sprintf("output %d on %d threads", i, threads), got, want[i], 0)
		}
	}
}

// TestPlanes: a pointwise and a depthwise convolution that alternate, a few planes at a time, have
// the same bits as one after the other.
func TestPlanes(t *testing.T) {
	const batch = 17 // many enough that they do not stay in cache
	outputs := func(device tensor.Device) (y []float32) {
		defer device.Close()
		b := graph.New(tensor.Float32)
		x := b.Data("x", tensor.Float32, batch, 5, 64, 72)
		conv := func(x *graph.Node, filters, size, groups int) *graph.Node {
			of := graph.ShapeOf(x)[1] / groups
			w := b.Parameter(fmt.Sprint("w", filters, size), initial(1), filters, of, size, size)
			if groups > 1 {
				return b.Apply(GroupedConv2D{Stride: Square(2), Padding: Square(1), Dilation: Square(1), Groups: groups}, x, w)
			}
			return b.Apply(ReLU{}, b.Apply(Conv2D{Stride: Square(1), Dilation: Square(1)}, x, w))
		}
		b.Output("y", conv(conv(conv(x, 33, 1, 1), 33, 3, 33), 7, 1, 1))
		p, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.Load(device, graph.LoadOptions{Seed: trialSeed})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		images := make([]float32, batch*5*64*72)
		for i := range images {
			images[i] = float32(i%101) / 50
		}
		y = make([]float32, batch*7*32*36)
		if err := cmp.Or(graph.Write(s, "x", 0, 0, images), s.Run(1), graph.Read(s, "y", 0, 0, y)); err != nil {
			t.Fatal(err)
		}
		return y
	}
	one := &strict{Host: tensor.NewHost(1), kernels: map[string]bool{}}
	want := outputs(one)
	for _, threads := range []int{1, 2} {
		if !slices.Equal(outputs(tensor.NewHost(threads)), want) {
			t.Errorf("%d threads: other bits than launch by launch", threads)
		}
	}
}
