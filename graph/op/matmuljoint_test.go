package op

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// jointCounter is a device that counts the launches that compute several chains at once.
type jointCounter struct {
	tensor.Device
	joint int
}

func (d *jointCounter) Load(w tensor.Workload) (tensor.Runner, error) {
	for i := range w.Launches {
		if w.Launches[i].Host.Joint.Chains > 1 {
			d.joint++
		}
	}
	return d.Device.Load(w)
}

// normal draws each chain's parameters.
func normal(seed uint64, chain uint32, stream uint16, _ tensor.Shape, to []float64) {
	random.Normals(to, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
}

// Products with a shared factor, and their gradients, have the same bits for several chains at once
// as for a single one.
func TestJointProducts(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, c := range []struct {
			data, parameter tensor.Shape
			product         MatMul
			dataSecond      bool
			linear          bool // with a bias and a ReLU
			joint           int
		}{
			{tensor.Shape{300, 70}, tensor.Shape{3, 70}, MatMul{TransposeB: true}, false, true, 2},
			{tensor.Shape{300, 70}, tensor.Shape{70, 10}, MatMul{}, false, true, 2},
			{tensor.Shape{70, 300}, tensor.Shape{70, 1}, MatMul{TransposeA: true}, false, false, 2},
			{tensor.Shape{70, 300}, tensor.Shape{5, 70}, MatMul{TransposeA: true, TransposeB: true}, false, true, 2},
			{tensor.Shape{70, 300}, tensor.Shape{4, 70}, MatMul{}, true, false, 2},
			{tensor.Shape{70, 300}, tensor.Shape{70, 4}, MatMul{TransposeA: true}, true, false, 2},
			{tensor.Shape{300, 70}, tensor.Shape{4, 70}, MatMul{TransposeB: true}, true, false, 2},
			{tensor.Shape{300, 70}, tensor.Shape{70, 4}, MatMul{TransposeA: true, TransposeB: true}, true, false, 2},
			{tensor.Shape{5, 7}, tensor.Shape{7, 4}, MatMul{}, false, false, 0},                    // little is shared
			{tensor.Shape{100, 70}, tensor.Shape{70, jointWidth/2 + 1}, MatMul{}, false, false, 0}, // wide enough
		} {
			name := fmt.Sprint(dtype, c.data, c.parameter, c.product, c.dataSecond)
			b := graph.New(dtype)
			x, w := b.Data("x", dtype, c.data...), b.Parameter("w", normal, c.parameter...)
			factors := []*graph.Node{x, w}
			if c.dataSecond {
				slices.Reverse(factors)
			}
			y, parameters := b.Apply(c.product, factors...), []*graph.Node{w}
			if c.linear {
				bias := b.Parameter("bias", normal, graph.ShapeOf(y)[1])
				y, parameters = b.Apply(ReLU{}, b.Apply(BiasAdd{}, y, bias)), append(parameters, bias)
			}
			outputs := map[string]tensor.Shape{"y": graph.ShapeOf(y)}
			b.Output("y", y)
			weights := b.State("cotangent", normal, graph.ShapeOf(y)...)
			for i, g := range b.Gradients(b.Apply(Sum{}, b.Apply(Multiply{}, y, weights)), parameters...) {
				name := fmt.Sprint("gradient ", i)
				b.Output(name, g)
				outputs[name] = graph.ShapeOf(g)
			}
			program, err := b.Compile()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			data := make([]float64, c.data.Elements())
			normal(7, 0, 9, nil, data)
			for _, threads := range []int{1, 2, 12} {
				device := &jointCounter{Device: tensor.NewHost(threads)}
				const chains = 11
				together := runChains(t, program, device, 0, chains, data, outputs)
				if device.joint != c.joint {
					t.Errorf("%s: %d launches compute several chains, want %d", name, device.joint, c.joint)
				}
				for chain := range chains {
					single := runChains(t, program, device, chain, 1, data, outputs)[0]
					for output, want := range single {
						if !slices.Equal(together[chain][output], want) {
							t.Errorf("%s, %d threads: %s of chain %d differs from the same chain without others", name, threads, output, chain)
						}
					}
				}
				device.Close()
			}
		}
	}
}

// A group that is larger than a product allows, because of another product, is computed chain by
// chain.
func TestJointProductsAreBounded(t *testing.T) {
	p := jointProduct{kernel.Gemm{M: jointElements / 8, N: 4, K: 4}, true}
	for chains, joint := range map[int]bool{2: true, 3: false} {
		if got := jointKernel[float32](p)(chains).Phases != nil; got != joint {
			t.Errorf("%d chains: computed together %v, want %v", chains, got, joint)
		}
	}
}

// runChains returns the outputs of some chains.
func runChains(
	t *testing.T, program *graph.Program, device tensor.Device, first, chains int, data []float64, outputs map[string]tensor.Shape,
) []map[string][]float64 {
	t.Helper()
	s, err := program.Load(device, graph.LoadOptions{Seed: 3, FirstChain: first, Chains: chains})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := writeData(s, program.DType(), data); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(1); err != nil {
		t.Fatal(err)
	}
	all := make([]map[string][]float64, chains)
	for chain := range all {
		all[chain] = map[string][]float64{}
		for name, shape := range outputs {
			all[chain][name] = readOutput(t, s, program.DType(), name, chain, shape)
		}
	}
	return all
}

func writeData(s *graph.Session, dtype tensor.DType, data []float64) error {
	if dtype == tensor.Float64 {
		return graph.Write(s, "x", 0, 0, data)
	}
	narrow := make([]float32, len(data))
	for i, v := range data {
		narrow[i] = float32(v)
	}
	return graph.Write(s, "x", 0, 0, narrow)
}
