package cuda

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
)

// call is one start of a kernel: blocks[0] x blocks[1] blocks for each chain, each with that many
// threads and bytes of dynamic shared memory.
type call struct {
	symbol    string
	blocks    [2]int
	threads   int
	shared    int
	arguments []tensor.Argument
	cycles    float64 // of a GPU, that a product is estimated to take
	launch    int     // whose work it does, of a step's launches; of several, the last
	spare     *spare  // a result that may be left out, or nil
	ends      []int   // of a kernel that takes rows: its arguments are so many rows, and row i has the blocks before ends[i]
}

// geometry makes a launch's calls.
type geometry func(p *placement, l *tensor.Launch) []call

// placement is what a geometry knows of the device, and where it asks for memory.
type placement struct {
	precision       Precision
	multiprocessors int
	capability      int // 10 major + minor
	chains          int
	groups          bool                         // whether there are the kernels of geometry_wgmma.go
	unpacked        bool                         // convolutions do not work on packed copies (PackedVariable)
	windowless      bool                         // no kernel works on pooling windows (WindowsVariable)
	shared          int                          // bytes of a block's shared memory, at most
	copies          map[packed]*tensor.Buffer    // that later launches may read; nil if these run by themselves
	wanted          map[*tensor.Buffer][]packing // the copies that a step's launches want
	spreads         []*spread                    // that later launches may read as windows
	summed          *spread                      // over whose windows the launch at hand sums, or nil
	launch          int                          // the launch at hand
	passes          map[*tensor.Buffer]int       // the launches that first go through a gradient and could sum it
	totals          []*total                     // that calls leave, instead of earlier launches
	workspace       int                          // bytes that launches have asked for so far, for each chain
	base            int                          // where workspace begins in the scratch arena
}

// Precision is how matrix products are computed: operands are rounded to it, sums are always
// float32.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	BF16 Precision = "bf16"
)

// work is a buffer for intermediate results of the launch at hand, undefined at its start.
func (p *placement) work(dtype tensor.DType, elements int) *tensor.Buffer {
	b := tensor.NewBuffer("workspace", tensor.Scratch, dtype, elements)
	b.Offset = p.base + p.workspace
	p.workspace += tensor.Align(b.Bytes())
	return b
}

// stridingThreads is the block size of kernels whose threads stride over their work.
const stridingThreads = 256

const warp = 32

// enough is as many blocks as the wanted threads need, but no more than fill all multiprocessors.
func enough(p *placement, wanted int) int {
	return max(1, min(ceil(wanted, stridingThreads), 8*p.multiprocessors))
}

func ceil(n, unit int) int { return (n + unit - 1) / unit }

// wholeWarps is a block's threads when that many have work to do.
func wholeWarps(threads int) int { return max(warp, ceil(threads, warp)*warp) }

// gatherers is how many blocks a multiprocessor should have before blocks take more items each.
const gatherers = 16

// callsOf is the geometry of a launch by itself: its calls with their grids, and workspace.
func callsOf(p *placement, l *tensor.Launch) []call {
	places := map[*tensor.Buffer]*tensor.Buffer{}
	var calls []call
	for _, c := range l.Calls {
		calls = append(calls, p.start(p.placed(c, places))...)
	}
	return calls
}

// placed is a call whose workspace has places; earlier calls of the launch may have been given
// these already.
func (p *placement) placed(c tensor.Call, places map[*tensor.Buffer]*tensor.Buffer) tensor.Call {
	c.Arguments = slices.Clone(c.Arguments)
	for i, a := range c.Arguments {
		b := a.Buffer
		if b == nil || b.Arena != tensor.Workspaces {
			continue
		}
		if places[b] == nil {
			places[b] = p.work(b.DType, b.Elements)
		}
		c.Arguments[i].Buffer = places[b]
	}
	return c
}

// start is what the driver starts for a call: one kernel, or a product's kernel and the sum of its
// slices.
func (p *placement) start(c tensor.Call) []call {
	c = p.ofWindows(c)
	s := call{symbol: c.Kernel, blocks: [2]int{1, 1}, arguments: c.Arguments}
	switch g := c.Grid.(type) {
	case tensor.Threads:
		s.blocks[0], s.threads = enough(p, int(g)), stridingThreads
	case tensor.Blocks:
		s.blocks, s.threads, s.shared = [2]int{g.Count, max(1, g.Parts)}, wholeWarps(g.Threads), g.Shared
	case tensor.Shares:
		each := max(1, min(g.Items*p.chains/(gatherers*max(1, p.multiprocessors)), g.Most))
		s.blocks[0], s.threads = ceil(g.Items, each), wholeWarps(g.Threads)
		if g.Rows {
			s.ends = []int{s.blocks[0]}
		}
	case tensor.Product:
		return productOf(c, g).calls(p)
	}
	return []call{s}
}

// described refuses a launch that does not say what a GPU is to start.
func described(l *tensor.Launch) error {
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

// stemOf is a kernel's name without its type, and "f32" or "f64".
func stemOf(kernel string) (stem, suffix string) {
	at := len(kernel) - len("f32")
	return kernel[:at-1], kernel[at:]
}
