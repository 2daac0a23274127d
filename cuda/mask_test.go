package cuda_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// maskCase is an activation that a convolution follows. The kernel of the image's gradient may also
// apply the activation's gradient.
type maskCase struct {
	name                                    string
	activation                              graph.Op
	conv                                    graph.Op
	batch, channels, filters, height, width int
	taps, depth                             int  // of a filter: taps x taps for each of depth channels
	separate                                bool // the convolution's kernel applies no mask
}

func (c maskCase) program(t *testing.T) (*graph.Program, map[string]int) {
	t.Helper()
	b, sizes := graph.New(tensor.Float32), map[string]int{}
	state := func(name string, begin int, shape ...int) *graph.Node {
		return b.State(name, func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			for i := range values {
				values[i] = float64((begin+i*i+i/7+int(chain)*i)%17-7) / 2
			}
		}, shape...)
	}
	x := state("x", 1, c.batch, c.channels, c.height, c.width)
	w, bias := state("w", 2, c.filters, c.depth, c.taps, c.taps), state("bias", 4, c.filters)
	y := b.Apply(op.BiasAdd{}, b.Apply(c.conv, b.Apply(c.activation, x), w), bias)
	loss := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, y, state("weights", 3, graph.ShapeOf(y)...)))
	of := []*graph.Node{x, w, bias}
	for i, g := range b.Gradients(loss, of...) {
		name := fmt.Sprint("gradient", i)
		b.Output(name, b.Apply(op.Add{}, g, of[i]))
		sizes[name] = graph.ShapeOf(g).Elements()
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program, sizes
}

// results returns the gradients of two chains and the kernels of a step. If step is false, it
// returns the gradients of one chain whose launches run on their own.
func (c maskCase) results(t *testing.T, device tensor.Device, step bool) (all [][]float64, symbols string) {
	t.Helper()
	program, sizes := c.program(t)
	loaded, chains := &catching{Device: device}, 2
	if !step {
		chains = 1
	}
	session, err := program.Load(loaded, graph.LoadOptions{Seed: 1, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if step {
		err = session.Run(2)
	} else {
		err = loaded.runner.Step(0, func(int) error { return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, host := device.(*tensor.Host); !host {
		symbols = strings.Join(cuda.Symbols(loaded.runner), " ")
	}
	for chain := range chains {
		all = append(all, outputs(t, session, chain, sizes))
	}
	return all, symbols
}

// TestGradMasks compares gradients through an activation and a convolution with the host's, to the
// bit, on numbers whose sums are exact. A step must have no call for the activation's gradient, nor
// for the bias gradient of a depthwise convolution. Launches on their own must give the same bits.
func TestGradMasks(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	depthwise := func(stride, padding int) graph.Op {
		return op.GroupedConv2D{Stride: op.Square(stride), Padding: op.Square(padding), Dilation: op.Square(1), Groups: 5}
	}
	one := op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1)}
	wide := op.Conv2D{Stride: op.Square(1), Padding: op.Square(1), Dilation: op.Square(1)}
	six := op.Clip{High: 6}
	for _, c := range testenv.Some(t, 3, []maskCase{
		{name: "depthwise", activation: six, conv: depthwise(1, 1), batch: 2, channels: 5, filters: 5, height: 9, width: 7, taps: 3, depth: 1},
		{name: "depthwise, stride", activation: six, conv: depthwise(2, 1), batch: 33, channels: 5, filters: 5, height: 19, width: 24, taps: 3, depth: 1},
		{name: "one tap", activation: six, conv: one, batch: 3, channels: 9, filters: 37, height: 6, width: 14, taps: 1, depth: 9},
		{name: "one tap, many filters", activation: six, conv: one, batch: 1, channels: 5, filters: 701, height: 2, width: 2, taps: 1, depth: 5},
		{name: "depthwise, ReLU", activation: op.ReLU{}, conv: depthwise(1, 2), batch: 2, channels: 5, filters: 5, height: 8, width: 8, taps: 5, depth: 1},
		{name: "depthwise, stride, ReLU", activation: op.ReLU{}, conv: depthwise(2, 2), batch: 2, channels: 5, filters: 5, height: 8, width: 7, taps: 5, depth: 1},
		{name: "one tap, ReLU", activation: op.ReLU{}, conv: one, batch: 2, channels: 33, filters: 4, height: 4, width: 5, taps: 1, depth: 33},
		{name: "other bounds", activation: op.Clip{High: 1.5}, conv: one, batch: 2, channels: 3, filters: 4, height: 4, width: 5, taps: 1, depth: 3, separate: true},
		{name: "more taps", activation: six, conv: wide, batch: 2, channels: 3, filters: 4, height: 4, width: 5, taps: 3, depth: 3, separate: true},
	}) {
		for _, precision := range []cuda.Precision{cuda.FP32, cuda.BF16} {
			t.Run(fmt.Sprintf("%s/%s", c.name, precision), func(t *testing.T) {
				device := cudatest.GPU(t, cuda.Options{Precision: precision})
				want, _ := c.results(t, host, true)
				got, symbols := c.results(t, device, true)
				closeTo(t, got, want, 0)
				if there := strings.Contains(symbols, "clip_bwd") || strings.Contains(symbols, "relu_bwd"); cuda.Capability(device) >= 80 && there != c.separate {
					t.Errorf("the kernels are %s", symbols)
				}
				if c.depth == 1 && strings.Contains(symbols, "bias_bwd") {
					t.Errorf("the bias's gradient has a call of its own: %s", symbols)
				}
				apart, _ := c.results(t, device, false)
				closeTo(t, apart, got[:1], 0)
			})
		}
	}
}
