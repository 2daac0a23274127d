package plan

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// geometry makes a launch's calls.
type lowering func(p *planner, l *tensor.Launch) []Call

// planner is the state in which launches are lowered, one after the other.
type planner struct {
	Target

	// In a step, and nil or empty where a launch is lowered on its own:

	launch       int                           // the launch that is being lowered
	copies       map[packKey]*tensor.Buffer    // packed copies that later launches may read
	requested    map[*tensor.Buffer][]packSpec // all packed copies that the step's launches read
	unpoolGrads  []*unpoolGrad                 // gradients that later launches may read by their windows
	summedUnpool *unpoolGrad                   // the one over whose windows the current launch sums, if it does
	firstPass    map[*tensor.Buffer]int        // the first launch that goes through a gradient and could sum it
	biasGradSums []*biasGradSum                // sums that a later call makes instead of their launch

	base      int // where the workspace begins in the scratch arena
	workspace int // bytes of workspace that one chain has so far
}

// work is a buffer for intermediate results of the launch at hand, undefined at its start.
func (p *planner) workBuffer(dtype tensor.DType, elements int) *tensor.Buffer {
	b := tensor.NewBuffer("workspace", tensor.Scratch, dtype, elements)
	b.Offset = p.base + p.workspace
	p.workspace += tensor.Align(b.Bytes())
	return b
}

// GridStrideThreads is the block size of kernels whose threads stride over their work.
const GridStrideThreads = 256

const warp = 32

// enough is as many blocks as the wanted threads need, but no more than fill all multiprocessors.
func gridSize(p *planner, wanted int) int {
	return max(1, min(ceilDiv(wanted, GridStrideThreads), 8*p.Multiprocessors))
}

func ceilDiv(n, unit int) int { return (n + unit - 1) / unit }

// roundUpToWarps is a block's threads when that many have work to do.
func roundUpToWarps(threads int) int { return max(warp, ceilDiv(threads, warp)*warp) }

// gatherers is how many blocks a multiprocessor should have before blocks take more items each.
const blocksPerMultiprocessor = 16

// lower is the geometry of a launch by itself: its calls with their grids, and workspace.
func lower(p *planner, l *tensor.Launch) []Call {
	places := map[*tensor.Buffer]*tensor.Buffer{}
	var calls []Call
	for _, c := range l.Calls {
		calls = append(calls, p.lowerCall(p.withWorkspace(c, places))...)
	}
	return calls
}

// placed is a call whose workspace has places; earlier calls of the launch may have been given
// these already.
func (p *planner) withWorkspace(c tensor.Call, places map[*tensor.Buffer]*tensor.Buffer) tensor.Call {
	c.Arguments = slices.Clone(c.Arguments)
	for i, a := range c.Arguments {
		b := a.Buffer
		if b == nil || b.Arena != tensor.Workspaces {
			continue
		}
		if places[b] == nil {
			places[b] = p.workBuffer(b.DType, b.Elements)
		}
		c.Arguments[i].Buffer = places[b]
	}
	return c
}

// start is what the driver starts for a call: one kernel, or a product's kernel and the sum of its
// slices.
func (p *planner) lowerCall(c tensor.Call) []Call {
	c = p.sumOverWindows(c)
	s := Call{Symbol: c.Kernel, Blocks: [2]int{1, 1}, Arguments: c.Arguments}
	switch g := c.Grid.(type) {
	case tensor.Threads:
		s.Blocks[0], s.Threads = gridSize(p, int(g)), GridStrideThreads
	case tensor.Blocks:
		s.Blocks, s.Threads, s.Shared = [2]int{g.Count, max(1, g.Parts)}, roundUpToWarps(g.Threads), g.Shared
	case tensor.Shares:
		each := max(1, min(g.Items*p.Chains/(blocksPerMultiprocessor*max(1, p.Multiprocessors)), g.Most))
		s.Blocks[0], s.Threads = ceilDiv(g.Items, each), roundUpToWarps(g.Threads)
		if g.Rows {
			s.RowEnds = []int{s.Blocks[0]}
		}
	case tensor.Product:
		return newProduct(c, g).lower(p)
	}
	return []Call{s}
}

// described refuses a launch that does not say what a GPU is to start.
func checkCalls(l *tensor.Launch) error {
	if len(l.Calls) == 0 {
		return errors.Errorf("has no calls for a GPU")
	}
	for _, c := range l.Calls {
		if c.Grid == nil {
			return errors.Errorf("%s has no grid", c.Kernel)
		}
	}
	return nil
}

// splitSuffix is a kernel's name without its type, and "f32" or "f64".
func splitSuffix(kernel string) (stem, suffix string) {
	at := len(kernel) - len("f32")
	return kernel[:at-1], kernel[at:]
}
