package plan

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// lower returns the calls of a launch on its own, with workspace for their intermediate results.
func lower(p *planner, l *tensor.Launch) []Call {
	places := map[*tensor.Buffer]*tensor.Buffer{}
	var calls []Call
	for _, c := range l.Calls {
		calls = append(calls, p.lowerCall(p.withWorkspace(c, places))...)
	}
	return calls
}

// withWorkspace returns c with its workspace buffers replaced by buffers that have memory. places
// maps the former to the latter for the launch's calls so far; withWorkspace adds the new ones.
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
		if isDepthwiseFilter(c) {
			return p.lowerDepthwiseFilter(c, g)
		}
		s.Blocks, s.Threads, s.Shared = [2]int{g.Count, max(1, g.Parts)}, roundUpToWarps(g.Threads), g.Shared
	case tensor.Shares:
		s = p.lowerShares(c, g)
	case tensor.Product:
		return newProduct(c, g).lower(p)
	}
	return []Call{s}
}

// lower returns the calls of the product by the cheapest kernels that can compute it. It tries the
// most specialized kernels first, whose functions return nil if others are cheaper.
func (g *product) lower(p *planner) []Call {
	// First layers, pooled.
	if windows := g.lowerWindowFilterGrad(p); windows != nil {
		return windows
	}
	if windows := g.lowerWindowForward(p); windows != nil {
		return windows
	}
	// Convolutions of 16 and 32 channels in bf16.
	if few := g.asFewChannels(p); few != nil {
		return few.lower(p)
	}
	// Other convolutions in tf32 and bf16: by wgmma, or by mma.sync on packed copies.
	if packed := g.lowerPacked(p); packed != nil {
		return packed
	}
	// Matrices with few rows or columns.
	if thin := g.lowerThin(p); thin != nil {
		return thin
	}
	return g.lowerTiles(p) // all others
}

// lowerPacked returns the calls of a convolution on packed copies, or nil if it is cheaper without.
// The choice changes the order of sums, so it is made as for one chain.
func (g *product) lowerPacked(p *planner) []Call {
	if !g.canPack(p) {
		return nil
	}
	// The costs for one chain decide whether to pack. The costs for one chain and for many decide
	// whether wgmma or mma.sync then multiplies (beats).
	unpacked := g.costUnpacked(p)
	if g.filterGrad {
		on := newPackedFilterGrad(p, g)
		apart, cycles, fits := on.split(p)
		grouped := on.asWGMMA(p)
		if grouped != nil {
			if grouped.split(p); !grouped.beats(p) {
				grouped = nil
			}
		}
		switch {
		case grouped != nil && grouped.costWithPacking(p) < unpacked:
			return grouped.lower(p)
		case fits && on.costWithPacking(p) < unpacked:
			return on.lower(p, apart, cycles)
		}
		return nil
	}
	on := g.asPacked()
	_, least := on.cheapest(p, 1)
	grouped := on.asWGMMA(p)
	if grouped != nil && grouped.beats(p) {
		_, least = grouped.cheapest(p, 1)
	} else {
		grouped = nil
	}
	switch {
	case !(least+on.packCost(p) < unpacked):
		return nil
	case grouped != nil:
		return grouped.lower(p)
	}
	return on.lower(p)
}

// checkCalls returns an error if a launch does not describe its calls, such as a launch of a test's
// op that only the host can run.
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
