package cuda_test

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// TestConstant: the 1 that differentiation starts from is there before the first step, unless it is
// an output.
func TestConstant(t *testing.T) {
	device := &catching{Device: cudatest.GPU(t, cuda.Options{})}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, kept := range []bool{false, true} {
			b := graph.New(dtype)
			x := b.State("x", nil, 3)
			loss := b.Apply(op.Sum{}, b.Apply(op.Exp{}, x))
			gradients := b.Gradients(loss, x, loss)
			b.Output("gradient", gradients[0])
			if kept {
				b.Output("one", b.Apply(op.ViewAs(1), gradients[1]))
			}
			program, err := b.Compile()
			if err != nil {
				t.Fatal(err)
			}
			session, err := program.Load(device, graph.LoadOptions{Chains: 2})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(cuda.Symbols(device.runner), "one_fwd_"+dtype.Suffix()); got != kept {
				t.Errorf("%s, an output %v: a step makes the constant: %v", dtype, kept, got)
			}
			if err := session.Run(2); err != nil {
				t.Fatal(err)
			}
			sizes := map[string]int{"gradient": 3}
			if kept {
				sizes["one"] = 1
			}
			for chain := range 2 {
				for i, v := range outputs(t, session, chain, sizes) {
					if v != 1 {
						t.Errorf("%s, chain %d: number %d is %v, want 1", dtype, chain, i, v)
					}
				}
			}
			session.Close()
		}
	}
}
