package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// SumThreads is the most threads of a GPU's block that makes sums.
const SumThreads = 256

// sums is how a GPU's kernel makes count sums of so many terms: each by a block of threads, or,
// when they are neighbours, sumNeighbours of them by one block.
type sums struct {
	count, terms int
	neighbours   bool
	threads      int
	plane        int // of tensor.Blocks
}

// partTerms and partNeighbours are the most terms of a part of a sum, what a block adds up in
// float64 in some microseconds; maxParts is the most parts, and partBlocks the most blocks for
// which a sum is made in parts.
const (
	partTerms      = 8192
	partNeighbours = 512
	maxParts       = 64
	partBlocks     = 2048
	sumNeighbours  = 32
)

func (s sums) blocks() int {
	if s.neighbours {
		return ceilDiv(s.count, sumNeighbours)
	}
	return s.count
}

// parts is the number of parts of each sum: one when there are enough sums, or few terms.
func (s sums) parts() int {
	terms := partTerms
	if s.neighbours {
		terms = partNeighbours
	}
	return max(1, min(ceilDiv(s.terms, terms), maxParts, partBlocks/s.blocks()))
}

// above is n/unit, rounded up.
func ceilDiv(n, unit int) int { return (n + unit - 1) / unit }

// channelSums are sums over all but the channels of rows [channels width].
func channelSums(rows, channels, width int) sums {
	s := sums{count: channels, terms: rows / channels * width, neighbours: width == 1, threads: SumThreads}
	if !s.neighbours {
		s.threads = min(s.terms/4, SumThreads)
	}
	return s
}

// emitSums emits a launch that fills its first argument. A GPU's kernel makes the sums in one call,
// or in parts, by the kernel whose stem goes on with "_partial", which are then added up.
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

// into is arguments with a workspace in place of the output.
func withOutput(workspace *tensor.Buffer, arguments []tensor.Argument) []tensor.Argument {
	return append([]tensor.Argument{tensor.Out(workspace)}, arguments[1:]...)
}

// fewColumns is the least number of columns for which a block of sum_partial makes sumNeighbours
// sums.
const fewColumns = 8

// sumPartial is the call that fills out with scale times the sums of partial's columns.
func sumPartial(l *graph.Lowering, out tensor.Argument, partial *tensor.Buffer, rows, columns int, scale float64) tensor.Call {
	blocks := columns
	if columns >= fewColumns {
		blocks = ceilDiv(columns, sumNeighbours)
	}
	return l.Call("sum_partial", tensor.Blocks{Count: blocks, Threads: SumThreads},
		out, tensor.In(partial), tensor.Int(rows), tensor.Int(columns), tensor.Float(tensor.Float64, scale))
}

// sumRows is the call that fills the output with the sums of the columns of the first input, a
// table of so many rows. A GPU may make the sums of several launches at once.
func sumRows(l *graph.Lowering, rows, columns int) tensor.Call {
	const together = 8 // as in cuda/kernels/sum.cu
	grid := tensor.Shares{Items: ceilDiv(columns, together), Most: 1, Threads: SumThreads, Rows: true}
	return l.Call("sum_rows", grid, l.Out(), l.In(0), tensor.Int(columns), tensor.Int(rows))
}

// A mean takes one block, of at most meanThreads threads, or, with more work than 4 meanPerBlock, a
// block for each meanPerBlock, at most meanBlocks.
const (
	meanThreads  = 1024
	meanPerBlock = 2048
	meanBlocks   = 256
)

// emitMean emits a loss, stem_fwd, the mean over a batch. A GPU's kernel makes it with one block
// when there is little work for threads, else stem_partial with several, whose sums are then added
// up.
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

// maxGathered is the most images that a block gathers, as in cuda/kernels/gather.cu.
const maxGathered = 32

// gathering is the grid of a batch of images: a thread takes four pixels of each of its block's.
func gatherGrid(size, pixels int) tensor.Grid {
	return tensor.Shares{Items: size, Most: maxGathered, Threads: min(pixels/4, 256)}
}
