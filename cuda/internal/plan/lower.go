package plan

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// lowering makes the calls of a launch.
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

// workBuffer returns a buffer for intermediate results of the current launch. Its contents are
// undefined at first. Workspace is only ever added within a step, so that two launches never share
// it; placeScratch lets buffers share memory afterwards.
func (p *planner) workBuffer(dtype tensor.DType, elements int) *tensor.Buffer {
	b := tensor.NewBuffer("workspace", tensor.Scratch, dtype, elements)
	b.Offset = p.base + p.workspace
	p.workspace += tensor.Align(b.Bytes())
	return b
}

// gridSize returns the blocks of a grid-stride loop over wanted elements: enough for a thread each,
// but at most 8 blocks of GridStrideThreads for each multiprocessor.
func gridSize(p *planner, wanted int) int {
	return max(1, min(ceilDiv(wanted, GridStrideThreads), 8*p.Multiprocessors))
}

// blocksPerMultiprocessor is how many blocks of a tensor.Shares grid a multiprocessor should get
// before blocks are given more than one item each. With more items a block does its setup less
// often, such as computing a step's numbers, but too few blocks leave multiprocessors idle.
const blocksPerMultiprocessor = 16

// lower returns the calls of a launch on its own, with workspace for their intermediate results.
func lower(p *planner, l *tensor.Launch) []Call {
	places := map[*tensor.Buffer]*tensor.Buffer{}
	var calls []Call
	for _, c := range l.Calls {
		calls = append(calls, p.lowerCall(p.withWorkspace(c, places))...)
	}
	return calls
}

// withWorkspace returns a call whose workspace buffers have memory. places has those of the
// launch's earlier calls, and gets the new ones.
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

// lowerCall turns the grid that a kernel is written for into blocks and threads. A product may
// become two calls: the product and the sum of its slices.
func (p *planner) lowerCall(c tensor.Call) []Call {
	c = p.sumOverWindows(c)
	s := Call{Symbol: c.Kernel, Blocks: [2]int{1, 1}, Arguments: c.Arguments}
	switch g := c.Grid.(type) {
	case tensor.Threads:
		s.Blocks[0], s.Threads = gridSize(p, int(g)), GridStrideThreads
	case tensor.Blocks:
		s.Blocks, s.Threads, s.Shared = [2]int{g.Count, max(1, g.Parts)}, roundUpToWarps(g.Threads), g.Shared
	case tensor.Shares:
		// As many items for each block as leave blocksPerMultiprocessor blocks, all chains
		// together.
		each := max(1, min(g.Items*p.Chains/(blocksPerMultiprocessor*max(1, p.Multiprocessors)), g.Most))
		s.Blocks[0], s.Threads = ceilDiv(g.Items, each), roundUpToWarps(g.Threads)
		if g.Rows { // one row so far; fuseRows may add others
			s.RowEnds = []int{s.Blocks[0]}
		}
	case tensor.Product:
		return newProduct(c, g).lower(p)
	}
	return []Call{s}
}

// checkCalls returns an error if a launch does not describe its calls, as a launch of a test's op
// that only the host runs.
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

// splitSuffix splits "relu_fwd_f32" into "relu_fwd" and "f32".
func splitSuffix(kernel string) (stem, suffix string) {
	at := len(kernel) - len("f32")
	return kernel[:at-1], kernel[at:]
}
