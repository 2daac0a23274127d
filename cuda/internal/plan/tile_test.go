package plan

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// layersOfMNIST has the products of a network of two convolutions with 64 filters of 5 x 5 and a
// linear layer with 256 outputs, on 28 x 28 images, and of an MLP.
var layersOfMNIST = map[string]product{
	"conv1 forward":  {conv: true, rows: 64, columns: 100 * 784, depth: 25},
	"conv1 filter":   {conv: true, rows: 64, columns: 25, depth: 100 * 784},
	"conv2 forward":  {conv: true, rows: 64, columns: 100 * 196, depth: 1600},
	"conv2 input":    {conv: true, rows: 64, columns: 100 * 196, depth: 1600},
	"conv2 filter":   {conv: true, rows: 64, columns: 1600, depth: 100 * 196},
	"linear forward": {rows: 100, columns: 256, depth: 3136},
	"linear input":   {rows: 100, columns: 3136, depth: 256},
	"linear weight":  {rows: 256, columns: 3136, depth: 100},
	"mlp forward":    {rows: 500, columns: 100, depth: 784},
	"mlp weight":     {rows: 100, columns: 784, depth: 500},
	"mlp output":     {rows: 500, columns: 10, depth: 100},
}

// TestSplit: the order of a sum, which the slices determine, is the same for any number of chains.
// Every depth is in a slice, and a single slice is never parallel.
func TestSplit(t *testing.T) {
	for name, g := range layersOfMNIST {
		for _, precision := range []Precision{FP32, TF32, BF16} {
			for _, multiprocessors := range []int{1, 4, 132} {
				p := &planner{Target: Target{Precision: precision, Capability: 90, Multiprocessors: multiprocessors, Chains: 1}}
				tiles, _ := tilesOf(p, tensor.Float32)
				one := g.split(p, tiles)
				for _, chains := range []int{1, 2, 3, 64, 1000} {
					p.Chains = chains
					c := g.split(p, tiles)
					if c.slices != one.slices || c.sliceDepth != one.sliceDepth {
						t.Errorf("%s, %s, %d multiprocessors: %d chains have %d slices of %d, one has %d of %d",
							name, precision, multiprocessors, chains, c.slices, c.sliceDepth, one.slices, one.sliceDepth)
					}
					if c.sliceDepth%sliceUnit != 0 || (c.slices-1)*c.sliceDepth >= g.depth || c.slices*c.sliceDepth < g.depth {
						t.Errorf("%s, %s, %d multiprocessors: %d slices of %d of a depth of %d", name, precision, multiprocessors, c.slices, c.sliceDepth, g.depth)
					}
					if c.parallel && c.slices == 1 {
						t.Errorf("%s: one slice has workspace", name)
					}
				}
			}
		}
	}
}

// TestSplitFills: one chain fills a large GPU, because the split of a product with few tiles is
// parallel. Many chains fill it without parallel splits.
func TestSplitFills(t *testing.T) {
	const multiprocessors = 132
	for name, g := range layersOfMNIST {
		p := &planner{Target: Target{Precision: FP32, Capability: 90, Multiprocessors: multiprocessors, Chains: 1}}
		c := g.split(p, tilesFP32)
		blocks := c.tile.blocks(&g)
		if c.parallel {
			blocks *= c.slices
		}
		if work := g.rows * g.columns * g.depth; blocks < multiprocessors/2 && work > 1<<24 {
			t.Errorf("%s: %d blocks on %d multiprocessors", name, blocks, multiprocessors)
		}
		p.Chains = 64
		if c := g.split(p, tilesFP32); c.parallel && c.tile.blocks(&g)*p.Chains > 4*multiprocessors {
			t.Errorf("%s: 64 chains, %d blocks each, have %d slices apart", name, c.tile.blocks(&g), c.slices)
		}
	}
}

// TestProductWorkspace: the workspace among the arguments of a product in slices has room for all
// slices.
func TestProductWorkspace(t *testing.T) {
	out := tensor.NewBuffer("out", tensor.Scratch, tensor.Float32, 100*256)
	in := tensor.NewBuffer("in", tensor.Scratch, tensor.Float32, 3136*256)
	l := &tensor.Launch{Calls: []tensor.Call{{
		Kernel: "matmul_f32",
		Grid:   tensor.Product{Rows: 100, Columns: 256, Depth: 3136, Forward: true, ReLU: true},
		Arguments: []tensor.Argument{
			tensor.Out(out), tensor.In(in), tensor.In(in), tensor.Int(100), tensor.Int(256), tensor.Int(3136), tensor.Int(0), tensor.Int(1),
		},
	}}}
	p := &planner{Target: Target{Precision: FP32, Capability: 90, Multiprocessors: 132, Chains: 1}}
	calls := lower(p, l)
	if len(calls) != 2 || calls[1].Symbol != "slices_f32" {
		t.Fatalf("got calls %+v, want a product in slices and their sum", calls)
	}
	slices := calls[0].Blocks[1]
	if got, want := calls[0].Arguments[0].Buffer.Elements, slices*100*256; got != want || p.workspace < 4*want {
		t.Errorf("%d slices have a workspace of %d elements, %d bytes, want %d elements", slices, got, p.workspace, want)
	}
	product, sum := calls[0].Arguments, calls[1].Arguments
	if epilogue := intValue(product[len(product)-3]); epilogue != 0 {
		t.Errorf("the product has epilogue %d, want it left to the sum", epilogue)
	}
	if epilogue := intValue(sum[len(sum)-1]); epilogue != epilogueReLU || sum[0].Buffer != out {
		t.Errorf("the sum has epilogue %d into %v, want %d into %v", epilogue, sum[0].Buffer, epilogueReLU, out)
	}
}

// TestSpeeds: a convolution's tile is chosen by the speeds of convolutions, which are lower than
// matrix products'; a full multiprocessor is faster than one with a single block.
func TestSpeeds(t *testing.T) {
	for name, tiles := range map[string][]tile{"float32": tilesFloat32, "float64": tilesFloat64, "fp32": tilesFP32, "tf32": tilesTF32, "bf16": tilesBF16} {
		for _, one := range tiles {
			m, i := one.matrices, one.conv
			if !(0 < i.full && i.full < m.full && 0 < i.single && i.single < m.single && m.single < m.full && i.single < i.full) {
				t.Errorf("%s %dx%d has the speeds %v and %v", name, one.rows, one.columns, m, i)
			}
		}
	}
	p := &planner{Target: Target{Precision: TF32, Capability: 90, Multiprocessors: 132, Chains: 64}}
	slow := []tile{tilesTF32[0], tilesTF32[1]}
	slow[0].conv = speed{0.1, 0.1}
	g := layersOfMNIST["conv2 forward"]
	g.conv, g.rows = false, 256
	if c := g.split(p, slow); c.tile.rows != 128 {
		t.Errorf("as a product of matrices it has tiles of %d rows, want the fast ones of 128", c.tile.rows)
	}
	g.conv = true
	if c := g.split(p, slow); c.tile.rows != 64 {
		t.Errorf("as a convolution, whose tiles of 128 rows are slow, it has tiles of %d rows", c.tile.rows)
	}
}
