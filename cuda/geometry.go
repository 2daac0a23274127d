package cuda

import (
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// call is one start of a kernel: blocks[0] x blocks[1] blocks for each chain, each of so many threads and bytes of dynamic shared memory.
type call struct {
	symbol    string
	blocks    [2]int
	threads   int
	shared    int
	arguments []tensor.Argument
}

// geometry makes a launch's calls. One launch may take several calls, with workspace between them.
type geometry func(p *placement, l *tensor.Launch) []call

// placement is what a geometry knows of the device, and where it asks for memory.
type placement struct {
	precision       Precision
	multiprocessors int
	capability      int // 10 major + minor
	chains          int
	workspace       int // bytes for each chain that launches have asked for so far
	base            int // where workspace begins in the scratch arena
}

// Precision is how matrix products are computed: their operands are rounded to it, their sums are float32 always.
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

// elementwiseThreads is the block of kernels whose threads stride over a launch's elements.
const elementwiseThreads = 256

// enough is as many blocks as threads are wanted, up to so many that all multiprocessors are full.
func enough(p *placement, wanted int) int {
	return max(1, min(ceil(wanted, elementwiseThreads), 8*p.multiprocessors))
}

// strided is enough blocks of threads that stride over what there is to do.
func strided(p *placement, l *tensor.Launch, wanted int) []call {
	return []call{{symbol: l.Kernel, blocks: [2]int{enough(p, wanted), 1}, threads: elementwiseThreads, arguments: l.Arguments}}
}

// elementwise gives each thread an element of the launch's count.
func elementwise(p *placement, l *tensor.Launch) []call { return strided(p, l, l.Count) }

// geometryOf is how a kernel is started, found by its name without the type.
func geometryOf(kernel string) geometry {
	stem := strings.TrimSuffix(strings.TrimSuffix(kernel, "_f32"), "_f64")
	for _, table := range []map[string]geometry{matrixGeometries, rowGeometries, updateGeometries} {
		if g := table[stem]; g != nil {
			return g
		}
	}
	return elementwise
}
