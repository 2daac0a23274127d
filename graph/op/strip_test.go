package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// strict is a host that runs launches one by one, and a tile of those that keep to strips only
// after it has spoilt, in their buffers, what lies outside the tile's strip.
type strict struct {
	*tensor.Host
	kernels map[string]bool // that it has found
	failed  error
}

func (s *strict) Load(w tensor.Workload) (tensor.Runner, error) {
	w.Launches = append([]tensor.Launch(nil), w.Launches...)
	for i := range w.Launches {
		l := &w.Launches[i]
		strip := l.Host.Strip
		if strip == (tensor.Strip{}) {
			continue
		}
		s.kernels[l.Kernel] = true
		l.Host.Strip = tensor.Strip{}
		l.Host.Phases = append([]tensor.Phase(nil), l.Host.Phases...)
		run := l.Host.Phases[0].Run
		l.Host.Phases[0].Run = func(a *tensor.Args, tile int) {
			var spoilt [][]float32
			var kept [][]float32
			for j, argument := range l.Arguments {
				if argument.Buffer == nil || argument.Buffer.Elements != strip.Elements {
					continue
				}
				all := tensor.Slice[float32](a, j)
				for _, part := range [][]float32{all[:tile*strip.Tile], all[min(len(all), (tile+1)*strip.Tile):]} {
					spoilt, kept = append(spoilt, part), append(kept, append([]float32(nil), part...))
					for k := range part {
						part[k] = float32(math.NaN())
					}
				}
			}
			run(a, tile)
			for j, part := range spoilt {
				for _, v := range part {
					if v == v {
						s.failed = errors.Errorf("%s: tile %d writes outside its strip", l.Kernel, tile)
					}
				}
				copy(part, kept[j])
			}
		}
	}
	return s.Host.Load(w)
}

// TestStrips: what says that it keeps to strips does, and the launches that are run together
// because of that compute what they do one by one.
func TestStrips(t *testing.T) {
	shape := tensor.Shape{5, 6, 17, 19} // more than one tile, and not a whole number of them
	build := func(device tensor.Device) (all [][]float64) {
		b := graph.New(tensor.Float32)
		var parameters []*graph.Node
		parameter := func(shape ...int) *graph.Node {
			p := b.Parameter(fmt.Sprint("p", len(parameters)), initial(1), shape...)
			parameters = append(parameters, p)
			return p
		}
		channels := shape[1]
		x := parameter(shape...)
		x = b.Apply(BiasAdd{}, x, parameter(channels))
		x = b.Apply(FilterResponseNorm{Epsilon: 1e-6}, x, parameter(channels), parameter(channels))
		x = b.Apply(SiLU{}, b.Apply(Threshold{}, x, parameter(channels)))
		x = b.Apply(ReLU{}, b.Apply(Add{}, x, parameters[0]))
		x = b.Apply(GroupNorm{Groups: 3, Epsilon: 1e-5}, x, parameter(channels), parameter(channels))
		x = b.Apply(Threshold{}, b.Apply(Tanh{}, x), parameter(channels))
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
			all = append(all, readOutput(t, s, tensor.Float32, fmt.Sprint("o", i), graph.ShapeOf(g)))
		}
		return all
	}
	alone := &strict{Host: tensor.NewHost(1), kernels: map[string]bool{}}
	want := build(alone)
	if alone.failed != nil {
		t.Error(alone.failed)
	}
	for _, name := range []string{
		"bias_bwd", "normalize_fwd", "normalize_threshold_fwd", "normalize_bwd_input", "normalize_bwd_scale", "threshold_fwd", "threshold_bwd",
		"threshold_bwd_bound", "silu_fwd", "silu_bwd", "tanh_fwd", "tanh_bwd", "relu_fwd", "relu_bwd", "add_fwd", "multiply_fwd", "fan_in_fwd",
	} {
		if !alone.kernels[name+"_f32"] {
			t.Errorf("%s does not keep to strips; those that do are %v", name, alone.kernels)
		}
	}
	for _, threads := range []int{1, 3} {
		for i, got := range build(tensor.NewHost(threads)) {
			same(t, fmt.Sprintf("output %d on %d threads", i, threads), got, want[i], 0)
		}
	}
}
