package plan

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// matrixProduct returns a product of float32 matrices, a [m k] or [k m] and b [k n] or [n k].
func matrixProduct(m, n, k, transposeA, transposeB, epilogue int) *product {
	in := tensor.In(tensor.NewBuffer("in", tensor.Scratch, tensor.Float32, max(m, n)*k))
	g := &product{
		stem: "matmul", rows: m, columns: n, depth: k, forward: true, epilogue: epilogue, operands: []tensor.Argument{in, in},
		out: tensor.Out(tensor.NewBuffer("out", tensor.Scratch, tensor.Float32, m*n)),
	}
	for _, v := range []int{m, n, k, transposeA, transposeB} {
		g.sizes = append(g.sizes, tensor.Int(v))
	}
	return g
}

// TestThinKinds: the products of a classifier's last layer use thin kernels, in all precisions, for
// any number of chains. Products of large layers and of large batches use tiles.
func TestThinKinds(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *product
		want thinKind
	}{
		{"forward", matrixProduct(100, 10, 256, 0, 1, 0), thinDots},
		{"weights", matrixProduct(10, 256, 100, 1, 0, 0), thinColumns},
		{"input", matrixProduct(100, 256, 10, 0, 0, epilogueMask), thinShallow},
		{"mlp forward", matrixProduct(500, 10, 100, 0, 1, 0), thinDots},
		{"mlp weights", matrixProduct(10, 100, 500, 1, 0, 0), thinColumns},
		{"mlp input", matrixProduct(500, 100, 10, 0, 0, epilogueMask), thinShallow},
		{"large forward", matrixProduct(100, 256, 3136, 0, 1, 0), ""},
		{"large input", matrixProduct(100, 3136, 256, 0, 0, epilogueMask), ""},
		{"large batch", matrixProduct(10000, 32, 3136, 0, 1, 0), ""},
		{"large batch, weights", matrixProduct(32, 3136, 10000, 1, 0, 0), ""},
	} {
		for _, precision := range []Precision{FP32, TF32, BF16} {
			for _, chains := range []int{1, 3, 64, 1000} {
				p := &planner{Target: Target{Precision: precision, Capability: 90, Multiprocessors: 132, Chains: chains, Shared: 227 << 10}}
				if got := c.g.thinKindOf(p); got != c.want {
					t.Errorf("%s, %s, %d chains: got %q, want %q", c.name, precision, chains, got, c.want)
				}
			}
		}
	}
	double := matrixProduct(100, 10, 256, 0, 1, 0)
	double.out.Buffer = tensor.NewBuffer("out", tensor.Scratch, tensor.Float64, 1000)
	if kind := double.thinKindOf(&planner{Target: Target{Precision: BF16, Capability: 90, Multiprocessors: 132}}); kind != "" {
		t.Errorf("a product in float64 has the kernel %q, which is of float32", kind)
	}
}

// TestThinTurns: with many chains, each chain has fewer blocks, whose threads do more work. The
// parts of a sum stay the same.
func TestThinTurns(t *testing.T) {
	p := &planner{Target: Target{Precision: BF16, Capability: 90, Multiprocessors: 132, Chains: 1}}
	g := matrixProduct(1000, 10, 1024, 0, 1, 0)
	one := g.lowerThin(p)[0]
	p.Chains = 256
	many := g.lowerThin(p)[0]
	if one.Blocks[0] <= many.Blocks[0] || one.Threads != many.Threads {
		t.Errorf("one chain has %d blocks of %d, 256 have %d of %d each", one.Blocks[0], one.Threads, many.Blocks[0], many.Threads)
	}
	if a, b := one.Arguments, many.Arguments; intValue(a[len(a)-2]) != intValue(b[len(b)-2]) {
		t.Errorf("the depth is in %d parts for one chain, in %d for many", intValue(a[len(a)-2]), intValue(b[len(b)-2]))
	}
}
