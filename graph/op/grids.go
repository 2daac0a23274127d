package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// SumThreads is the maximum number of threads of a GPU's block that computes sums.
const SumThreads = 256

// sums describes how a GPU's kernel computes count sums of terms terms each. A block computes one
// sum whose terms are contiguous, or sumNeighbours sums that are next to each other in memory,
// where neighbouring threads read neighbouring addresses.
type sums struct {
	count, terms int
	neighbours   bool
	warps        bool // a warp computes a sum, sumWarps of them a block
	threads      int
	plane        int // of tensor.Blocks
}

// A block adds up partTerms terms of a sum in float64 in some microseconds, or partNeighbours
// terms of neighbouring sums. A sum of more terms is split into parts: at most maxParts, and at
// most partBlocks blocks for the parts of all sums. The number of parts, and therefore the bits,
// depend only on the shape.
const (
	partTerms      = 8192
	partNeighbours = 512
	maxParts       = 64
	partBlocks     = 2048
	sumNeighbours  = 32
	sumWarps       = SumThreads / 32
)

func (s sums) blocks() int {
	if s.warps {
		return ceilDiv(s.count, sumWarps)
	}
	if s.neighbours {
		return ceilDiv(s.count, sumNeighbours)
	}
	return s.count
}

// parts returns the number of parts of each sum: 1 if there are enough sums, or few terms.
func (s sums) parts() int {
	terms := partTerms
	if s.neighbours {
		terms = partNeighbours
	}
	return max(1, min(ceilDiv(s.terms, terms), maxParts, partBlocks/s.blocks()))
}

// ceilDiv returns n/unit, rounded up.
func ceilDiv(n, unit int) int { return (n + unit - 1) / unit }

// channelSums describes the sums of a tensor over all axes except the channels'. The tensor has
// rows planes of width elements.
func channelSums(rows, channels, width int) sums {
	s := sums{count: channels, terms: rows / channels * width, neighbours: width == 1, threads: SumThreads}
	if !s.neighbours {
		s.threads = min(s.terms/4, SumThreads)
	}
	return s
}

// emitSums emits a launch that fills its first argument with sums. A GPU computes them in one call
// or, in parts, by the kernel stem_partial, which fills a workspace, and sum_partial, which adds up
// the parts in order.
func emitSums(l *graph.Lowering, stem, kernel string, s sums, host tensor.HostKernel, arguments ...tensor.Argument) {
	parts := s.parts()
	grid := tensor.Blocks{Count: s.blocks(), Parts: parts, Threads: s.threads, Plane: s.plane}
	if parts == 1 {
		l.EmitCalls(stem, []tensor.Call{l.Call(kernel, grid, arguments...)}, host, arguments...)
		return
	}
	partial := tensor.NewWorkspace(tensor.Float64, parts*s.count)
	l.EmitCalls(stem, []tensor.Call{
		l.Call(kernel+"_partial", grid, withOutput(partial, arguments)...),
		sumPartial(l, arguments[0], partial, parts, s.count, 1),
	}, host, arguments...)
}

// withOutput returns arguments with a workspace instead of the output.
func withOutput(workspace *tensor.Buffer, arguments []tensor.Argument) []tensor.Argument {
	return append([]tensor.Argument{tensor.Out(workspace)}, arguments[1:]...)
}

// fewColumns is the number of columns from which a block of sum_partial computes sumNeighbours sums
// instead of one.
const fewColumns = 8

// sumPartial returns the call that fills out with scale times the sums of the columns of partial
// [rows columns].
func sumPartial(l *graph.Lowering, out tensor.Argument, partial *tensor.Buffer, rows, columns int, scale float64) tensor.Call {
	blocks := columns
	if columns >= fewColumns {
		blocks = ceilDiv(columns, sumNeighbours)
	}
	return l.Call("sum_partial", tensor.Blocks{Count: blocks, Threads: SumThreads},
		out, tensor.In(partial), tensor.Int(rows), tensor.Int(columns), tensor.Float(tensor.Float64, scale))
}

// sumRows returns the call that fills the output with the sums of the columns of the first input
// [rows columns]. A GPU may merge the calls of several launches into one.
func sumRows(l *graph.Lowering, rows, columns int) tensor.Call {
	const together = 8 // as in cuda/kernels/sum.cu
	grid := tensor.Shares{Items: ceilDiv(columns, together), MaxItems: 1, Threads: SumThreads, Rows: true}
	return l.Call("sum_rows", grid, l.Out(), l.In(0), tensor.Int(columns), tensor.Int(rows))
}

// The mean of a loss is computed by one block of at most meanThreads threads. If there is work for
// more than 4 meanPerBlock threads, there is a block for every meanPerBlock of it, up to
// meanBlocks.
const (
	meanThreads  = 1024
	meanPerBlock = 2048
	meanBlocks   = 256
)

// emitMean emits a loss that is a mean over a batch. A GPU computes it by one block of the kernel
// stem_fwd if there is little work, otherwise by several blocks of stem_partial, followed by
// sum_partial.
func emitMean(l *graph.Lowering, stem string, work tensor.Threads, batch int, host tensor.HostKernel, arguments ...tensor.Argument) {
	if work <= 4*meanPerBlock {
		l.Emit(stem+"_fwd", tensor.Block(min(int(work), meanThreads)), host, arguments...)
		return
	}
	blocks := min(ceilDiv(int(work), meanPerBlock), meanBlocks)
	partial := tensor.NewWorkspace(tensor.Float64, blocks)
	l.EmitCalls(stem+"_fwd", []tensor.Call{
		l.Call(stem+"_partial", tensor.Blocks{Count: blocks, Threads: SumThreads}, withOutput(partial, arguments)...),
		sumPartial(l, arguments[0], partial, blocks, 1, 1/float64(batch)),
	}, host, arguments...)
}

// maxGathered is the maximum number of images of a block, as in cuda/kernels/gather.cu.
const maxGathered = 32

// gatherGrid returns the grid of a batch of images: a thread handles four pixels of each image of
// its block.
func gatherGrid(size, pixels int) tensor.Grid {
	return tensor.Shares{Items: size, MaxItems: maxGathered, Threads: min(pixels/4, 256)}
}
