package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// The sizes of a reduction's tiles.
const (
	reduceTile  = 8192 // approximate number of elements that one tile adds up
	reduceWidth = 256  // neighbouring sums of one unit
)

// reduceAxes is the maximum number of axes that are kept, or summed over, once neighbours of one
// kind are merged: the two kinds then alternate.
const reduceAxes = maxAxes / 2

// reduction is a sum over a set of axes, divided into tiles. Neighbouring axes that are both summed
// over, or both kept, are merged. The innermost of the merged axes is contiguous: the run. A unit
// of work is one sum if the run is summed over, and up to reduceWidth neighbouring sums if it is
// kept. Several cheap units make one tile. An expensive unit is split over several tiles, as
// split-K does for matrix products, and their partial sums are added in order.
type reduction struct {
	kept, summed strided.Layout // over the offsets of the runs
	run          int
	alongRun     bool // the run is summed over
	sums         int  // elements of the output
	units        int
	perBlock     int // units that share a kept offset
	grouped      int // units in a tile
	splits       int // tiles to a unit
	terms        int // of one sum, counted in runs when the run is kept
}

// newReduction plans the sum of a tensor of the given shape. The innermost group of axes becomes
// the run; the other groups become the layouts of kept and summed offsets. Then units are grouped
// or split so that a tile adds up about reduceTile elements.
func newReduction(shape tensor.Shape, over Axes) reduction {
	var r reduction
	groups := collapse(shape, func(axis int) int {
		if over.has(axis) {
			return 1
		}
		return 0
	})
	last := groups[len(groups)-1]
	r.run, r.alongRun = last.extent, last.class == 1
	for i, group := range groups[:len(groups)-1] {
		stride := 1
		for _, inner := range groups[i+1:] {
			stride *= inner.extent
		}
		if group.class == 1 {
			r.summed.Add(group.extent, stride)
		} else {
			r.kept.Add(group.extent, stride)
		}
	}
	r.perBlock, r.terms = 1, r.summed.Count()*r.run
	cost := r.terms
	r.sums = r.kept.Count()
	if !r.alongRun {
		r.perBlock = (r.run + reduceWidth - 1) / reduceWidth
		r.terms = r.summed.Count()
		cost = r.terms * min(r.run, reduceWidth)
		r.sums *= r.run
	}
	r.units = r.kept.Count() * r.perBlock
	r.grouped = max(1, reduceTile/cost)
	r.splits = min(r.terms, (cost+reduceTile-1)/reduceTile)
	return r
}

// hostReduction fills argument 0 with scale times the sums of argument 1. Its first phase fills the
// workspace [splits sums] with partial sums in float64, the second adds these up.
func hostReduction[T float32 | float64](r reduction, scale float64) tensor.HostKernel {
	tiles := (r.units + r.grouped - 1) / r.grouped
	host := tensor.HostKernel{
		Workspace: 8 * r.splits * r.sums,
		Phases: []tensor.Phase{{Tiles: tiles * r.splits, Run: func(a *tensor.Args, tile int) {
			x, partial := tensor.Slice[T](a, 1), tensor.Workspace[float64](a)
			split := tile % r.splits
			lo, hi := split*r.terms/r.splits, (split+1)*r.terms/r.splits
			first := tile / r.splits * r.grouped
			end := min(r.units, first+r.grouped)
			if r.alongRun && r.summed.Axes == 0 && r.splits == 1 {
				sumPlanes(partial[first:end], x[first*r.run:end*r.run], r.run)
				return
			}
			for unit := first; unit < end; unit++ {
				if r.alongRun {
					partial[split*r.sums+unit] = sumRuns(&r, x[r.kept.At(unit):], lo, hi)
				} else {
					addRuns(&r, partial[split*r.sums:], x, unit, lo, hi)
				}
			}
		}}},
	}
	combine := tensor.Rows(r.sums, 1, func(a *tensor.Args, lo, hi int) {
		y, partial := tensor.Slice[T](a, 0), tensor.Workspace[float64](a)
		for i := lo; i < hi; i++ {
			total := 0.0
			for split := range r.splits {
				total += partial[split*r.sums+i]
			}
			y[i] = T(total * scale)
		}
	})
	host.Phases = append(host.Phases, combine.Phases...)
	return host
}

// sumPlanes sets each total to the sum of one run of x.
func sumPlanes[T float32 | float64](totals []float64, x []T, run int) {
	for len(totals) > 0 {
		n := min(len(totals), kernel.PlanesTogether)
		kernel.WideSumPlanes(totals[:n], x[:n*run])
		totals, x = totals[n:], x[n*run:]
	}
}

// sumRuns returns the sum of terms lo to hi of one sum, whose runs begin at x.
func sumRuns[T float32 | float64](r *reduction, x []T, lo, hi int) float64 {
	total := 0.0
	for lo < hi {
		at := lo % r.run
		n := min(r.run-at, hi-lo)
		total += kernel.WideSum(x[r.summed.At(lo/r.run)+at:][:n])
		lo += n
	}
	return total
}

// addRuns fills partial with the sums of one unit of neighbours over runs lo to hi.
func addRuns[T float32 | float64](r *reduction, partial []float64, x []T, unit, lo, hi int) {
	block, from := unit/r.perBlock, unit%r.perBlock*reduceWidth
	width := min(reduceWidth, r.run-from)
	sums := partial[block*r.run+from:][:width]
	clear(sums)
	x = x[r.kept.At(block)+from:]
	for i := lo; i < hi; i++ {
		for j, v := range x[r.summed.At(i):][:width] {
			sums[j] += float64(v)
		}
	}
}

// onGPU selects the kernel for GPUs: sum_fwd computes neighbouring sums, sum_fwd_runs one sum for
// each block, if there is only one or its terms are contiguous and at least sumNeighbours, and
// sum_fwd_warps one for each warp, if there are many short ones. summed has all axes that are
// summed over.
func (r *reduction) onGPU(summed strided.Layout) (s sums, kernel string) {
	innermost, stride := 1, 0
	if last := summed.Axes - 1; last >= 0 {
		innermost, stride = summed.Extents[last], summed.Strides[last]
	}
	s = sums{count: r.sums, terms: summed.Count(), neighbours: true, threads: SumThreads}
	if s.count > 1 && (stride != 1 || innermost == 1 || s.terms < sumNeighbours) {
		return s, "sum_fwd"
	}
	s.neighbours, s.threads = false, min(s.terms, SumThreads)
	if s.count >= minWarpSums && s.terms <= maxWarpTerms {
		s.warps, s.threads = true, SumThreads
		return s, "sum_fwd_warps"
	}
	return s, "sum_fwd_runs"
}

// Sums of at most maxWarpTerms terms, if there are at least minWarpSums of them, are computed by a
// warp each: blocks of their own would take longer to start than to add up.
const (
	minWarpSums  = 256
	maxWarpTerms = 1024
)

// lowerReduction emits the launch of a sum over some axes, multiplied by scale. The kernel's
// integers are the elements of the output and of the input, followed by extents and strides of
// reduceAxes kept axes and of reduceAxes axes that are summed over.
func lowerReduction(l *graph.Lowering, stem string, over Axes, scale float64) {
	r := newReduction(l.Shapes[0], over)
	host := graph.Pick(l, hostReduction[float32], hostReduction[float64])(r, scale)
	kept, summed := r.kept, r.summed
	if r.alongRun {
		summed.Add(r.run, 1)
	} else {
		kept.Add(r.run, 1)
	}
	arguments := []tensor.Argument{l.Out(), l.In(0), tensor.Int(r.sums), tensor.Int(l.Shapes[0].Elements())}
	arguments = append(append(arguments, kept.Arguments(reduceAxes)...), summed.Arguments(reduceAxes)...)
	s, kernel := r.onGPU(summed)
	emitSums(l, stem, kernel, s, host, append(arguments, tensor.Float(l.DType, scale))...)
}
