package cuda

import (
	"github.com/pollen-ml/pollen/tensor"
)

// rowGeometries are those of kernels that are not matrix products. What is not here is elementwise.
//
// Sums have the order that their kernels' grids give them, so that these come from shapes alone, never from the device.
var rowGeometries = map[string]geometry{
	"record_fwd": record,

	"gather_images":   gatherImages,
	"count_proposals": func(_ *placement, l *tensor.Launch) []call { return oneBlock(l, 1, warp) },

	"relu_fwd": fours, "relu_bwd": fours, "fan_in_fwd": fours, "bias_fwd": fours, "threshold_fwd": fours, "threshold_bwd": fours,
	"dropout_fwd": fours, "noise_normal_fwd": fours, "noise_uniform_fwd": fours,
	"add_fwd": fours, "subtract_fwd": fours, "multiply_fwd": fours, "divide_fwd": fours, "logaddexp_fwd": fours,
	"displaced_fwd": fours, "curvature_fwd": fours, "curvature_rest_fwd": fours,

	"bias_bwd":            channelSums,
	"threshold_bwd_bound": channelSums,
	"sum_fwd":             sumOverAxes,
	"mean_fwd":            sumOverAxes,

	"cross_entropy_fwd":   crossEntropy,
	"cross_entropy_bwd":   func(p *placement, l *tensor.Launch) []call { return warps(p, l, integer(l.Arguments[4])) },
	"softmax_fwd":         func(p *placement, l *tensor.Launch) []call { return warps(p, l, integer(l.Arguments[2])) },
	"accuracy_fwd":        func(_ *placement, l *tensor.Launch) []call { return oneBlock(l, integer(l.Arguments[3]), 1024) },
	"log_probability_fwd": func(p *placement, l *tensor.Launch) []call { return warps(p, l, integer(l.Arguments[3])) },
	"log_probability_bwd": func(p *placement, l *tensor.Launch) []call { return warps(p, l, integer(l.Arguments[4])) },

	"squared_error_fwd":    likelihood,
	"bernoulli_logits_fwd": likelihood,

	"normalize_fwd":           func(_ *placement, l *tensor.Launch) []call { return groups(l, 4) },
	"normalize_threshold_fwd": func(_ *placement, l *tensor.Launch) []call { return groups(l, 5) },
	"normalize_bwd_input":     func(_ *placement, l *tensor.Launch) []call { return groups(l, 4) },
	"normalize_bwd_scale":     normalizeBackwardScale,
}

// stemOf is a kernel's name without its type, and "f32" or "f64".
func stemOf(kernel string) (stem, suffix string) {
	at := len(kernel) - len("f32")
	return kernel[:at-1], kernel[at:]
}

// fours gives each thread four neighbouring elements of the launch's count.
func fours(p *placement, l *tensor.Launch) []call {
	return strided(p, l, ceil(l.Count, 4))
}

// warps gives each warp a row.
func warps(p *placement, l *tensor.Launch, rows int) []call {
	return strided(p, l, rows*warp)
}

const warp = 32

func ceil(n, unit int) int { return (n + unit - 1) / unit }

// wholeWarps is a block of a thread for each of n, of at most so many, and of whole warps.
func wholeWarps(n, most int) int { return max(warp, min(ceil(n, warp)*warp, most)) }

// oneBlock is a block of a thread for each of n, of at most so many.
func oneBlock(l *tensor.Launch, n, most int) []call {
	return []call{{symbol: l.Kernel, blocks: [2]int{1, 1}, threads: wholeWarps(n, most), arguments: l.Arguments}}
}

// record is a block to a metric: (ring, header, the values of some, the numbers of their elements, first, columns, rows), 0 elements where there is none.
func record(_ *placement, l *tensor.Launch) []call {
	together := (len(l.Arguments) - 5) / 2
	metrics, most := 0, 0
	for _, elements := range l.Arguments[2+together:][:together] {
		if n := integer(elements); n > 0 {
			metrics, most = metrics+1, max(most, n)
		}
	}
	return []call{{symbol: l.Kernel, blocks: [2]int{metrics, 1}, threads: wholeWarps(most, 256), arguments: l.Arguments}}
}

// The most images of a block, as in kernels/gather.cu, and how many blocks of a multiprocessor are worth more than fewer with more images.
const (
	mostGathered  = 32
	gatherers     = 16
	gatherThreads = 256
)

// gatherImages is some images to a block: (y, images, header, examples, size, pixels, ...).
func gatherImages(p *placement, l *tensor.Launch) []call {
	size, pixels := integer(l.Arguments[4]), integer(l.Arguments[5])
	rows := max(1, min(size*p.chains/(gatherers*max(1, p.multiprocessors)), mostGathered))
	return []call{{
		symbol: l.Kernel, blocks: [2]int{ceil(size, rows), 1}, threads: wholeWarps(pixels/4, gatherThreads), arguments: l.Arguments,
	}}
}

// summation is how a kernel adds up: sums of so many terms, each by a block of threads, or 32 that are neighbours by one.
type summation struct {
	sums, terms int
	neighbours  bool
	threads     int
}

// The most terms of a sum's part, in double what a block adds up in some microseconds; and the most parts.
const (
	partTerms      = 8192
	partNeighbours = 512
	mostParts      = 64
)

func (s summation) blocks() int {
	if s.neighbours {
		return ceil(s.sums, warp)
	}
	return s.sums
}

// parts is into how many parts each sum is cut: one when there are enough sums, or few terms.
func (s summation) parts() int {
	terms := partTerms
	if s.neighbours {
		terms = partNeighbours
	}
	return max(1, min(ceil(s.terms, terms), mostParts, 2048/s.blocks()))
}

// calls makes the sums in one call of the launch's kernel, or in parts, by the kernel whose stem goes on with "_partial", which are then added
// up. The launch's first argument is what it fills.
func (s summation) calls(p *placement, l *tensor.Launch, stem string) []call {
	_, suffix := stemOf(l.Kernel)
	parts := s.parts()
	if parts == 1 {
		return []call{{symbol: stem + "_" + suffix, blocks: [2]int{s.blocks(), 1}, threads: s.threads, arguments: l.Arguments}}
	}
	partial := p.work(tensor.Float64, parts*s.sums)
	return []call{
		{
			symbol: stem + "_partial_" + suffix, blocks: [2]int{s.blocks(), parts}, threads: s.threads,
			arguments: append([]tensor.Argument{tensor.Out(partial)}, l.Arguments[1:]...),
		},
		sumPartial(l, partial, parts, s.sums, 1),
	}
}

// fewColumns is from when on sum_partial makes 32 sums with a block.
const fewColumns = 8

// sumPartial is the call that fills a launch's first argument with scale times the sums of partial's columns.
func sumPartial(l *tensor.Launch, partial *tensor.Buffer, rows, columns int, scale float64) call {
	_, suffix := stemOf(l.Kernel)
	blocks := columns
	if columns >= fewColumns {
		blocks = ceil(columns, warp)
	}
	return call{
		symbol: "sum_partial_" + suffix, blocks: [2]int{blocks, 1}, threads: 256,
		arguments: []tensor.Argument{
			l.Arguments[0], tensor.In(partial), tensor.Int(rows), tensor.Int(columns), tensor.Real(tensor.Float64, scale),
		},
	}
}

// channelSums is a launch whose arguments end with n, channels and width, see kernels/channels.cuh.
func channelSums(p *placement, l *tensor.Launch) []call {
	sizes := l.Arguments[len(l.Arguments)-3:]
	n, channels, width := integer(sizes[0]), integer(sizes[1]), integer(sizes[2])
	s := summation{sums: channels, terms: n / channels, neighbours: width == 1, threads: 256}
	if !s.neighbours {
		s.threads = wholeWarps(s.terms/4, 256)
	}
	stem, _ := stemOf(l.Kernel)
	return s.calls(p, l, stem)
}

// sumOverAxes is launch (y, x, sums, elements, extents and strides of 3 kept axes, of 3 that are summed over, scale).
func sumOverAxes(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	s := summation{sums: integer(a[2]), terms: integer(a[3]) / integer(a[2]), neighbours: true, threads: 256}
	innermost, stride := integer(a[12]), integer(a[15])
	if s.sums > 1 && (stride != 1 || innermost == 1 || s.terms < warp) {
		return s.calls(p, l, "sum_fwd")
	}
	s.neighbours, s.threads = false, wholeWarps(s.terms, 256)
	return s.calls(p, l, "sum_fwd_runs")
}

// mean is a launch whose only sum is made by one block when there is little work, else by several, whose sums are then added up: the work is in units
// of a thread, and the sum's scale is 1/divisor.
func mean(p *placement, l *tensor.Launch, units, perBlock, divisor int) []call {
	if units <= 4*perBlock {
		return oneBlock(l, units, 1024)
	}
	stem, suffix := stemOf(l.Kernel)
	blocks := min(ceil(units, perBlock), 256)
	partial := p.work(tensor.Float64, blocks)
	return []call{
		{
			symbol: partialOf(stem) + suffix, blocks: [2]int{blocks, 1}, threads: 256,
			arguments: append([]tensor.Argument{tensor.Out(partial)}, l.Arguments[1:]...),
		},
		sumPartial(l, partial, blocks, 1, 1/float64(divisor)),
	}
}

// partialOf is the kernel of a loss's partial sums.
func partialOf(stem string) string { return stem[:len(stem)-len("fwd")] + "partial_" }

// crossEntropy is launch (loss, logits, labels, batch, classes).
func crossEntropy(p *placement, l *tensor.Launch) []call {
	batch := integer(l.Arguments[3])
	return mean(p, l, batch*warp, 2048, batch)
}

// likelihood is launch (loss, prediction, target, batch, width).
func likelihood(p *placement, l *tensor.Launch) []call {
	batch, width := integer(l.Arguments[3]), integer(l.Arguments[4])
	return mean(p, l, batch*width, 2048, batch)
}

// groups is a block to a row of a launch whose arguments from first on are rows, channels and width.
func groups(l *tensor.Launch, first int) []call {
	rows, size := integer(l.Arguments[first]), integer(l.Arguments[first+1])*integer(l.Arguments[first+2])
	return []call{{symbol: l.Kernel, blocks: [2]int{rows, 1}, threads: wholeWarps(size, 256), arguments: l.Arguments}}
}

// normalizeBackwardScale is launch (dgamma, dout, x, rows, channels, width, all channels, ...).
func normalizeBackwardScale(p *placement, l *tensor.Launch) []call {
	planes, channels := integer(l.Arguments[3])*integer(l.Arguments[4]), integer(l.Arguments[6])
	products := p.work(tensor.Float64, planes)
	calls := groups(l, 3)
	calls[0].arguments = append([]tensor.Argument{tensor.Out(products)}, l.Arguments[1:]...)
	return append(calls, sumPartial(l, products, planes/channels, channels, 1))
}
