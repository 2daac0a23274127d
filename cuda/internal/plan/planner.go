package plan

import "github.com/pollen-ml/pollen/tensor"

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
	summedUnpool *unpoolGrad                   // the gradient over whose windows the current launch sums, or nil
	firstPass    map[*tensor.Buffer]int        // the first launch that goes through a gradient and could sum it
	gathers      map[*tensor.Buffer]*gathered  // launches that gather images which products read from the data set, by their results
	keptImages   map[*tensor.Buffer]bool       // gathered images that calls read as float32
	biasGradSums []*biasGradSum                // sums that a later call makes instead of their launch

	base      int // where the workspace begins in the scratch arena
	workspace int // bytes of workspace that one chain has so far
}

// biasGradSum is the gradient of a convolution's bias: the sum of a gradient over each channel's
// planes. Its launch would read the whole gradient only for that. In a step a later call that reads
// it anyway, to pack it or to multiply it by windows, makes the sum on the side: each of its blocks
// writes the sums of its part to a row of a table, one more call adds up the rows, and the launch
// has no calls.
type biasGradSum struct {
	gradient        *tensor.Buffer
	plane, channels int
	out             tensor.Argument
	separate        lowering // of the launch on its own, to the same bits; nil until a call makes the sum
}

// unpoolGrad is the gradient of a pooled convolution's output. In each 2 x 2 window it is the
// window's gradient where the maximum was, and 0 at the other three pixels. Most kernels that need
// it can read it in the compact form, the windows' gradients and the argmax bytes, which is a
// quarter of the numbers. For example, after a convolution with 64 filters of 28 x 28 images, the
// gradient of an image has 50 176 numbers; its windows have 12 544 numbers and 12 544 bytes.
// The full gradient is written only before a call that reads it itself.
type unpoolGrad struct {
	gradient      *tensor.Buffer
	windows       tensor.Argument // their gradients
	argmax        *tensor.Buffer  // where in its window each maximum was
	height, width int             // of a plane of windows
	make          Call            // writes gradient
	made          bool
}

// gathered is a launch that gathers the images of a step's batch from the data set, as float32. A
// product by a rounded tile can read the data set itself, by a table of the batch's examples. If
// all launches that read the images are such products, only the table is made.
type gathered struct {
	result    *tensor.Buffer
	arguments []tensor.Argument // of the launch
	examples  *tensor.Buffer    // the table
}

// workBuffer returns a buffer for intermediate results of the current launch. Its contents are
// undefined at first. Workspace only grows within a step, so that two launches never share it;
// placeScratch lets buffers share memory afterwards.
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

// stemOf returns "relu_fwd" for "relu_fwd_f32".
func stemOf(kernel string) string { return kernel[:len(kernel)-len("_f32")] }

// blocksPerMultiprocessor is how many blocks of a tensor.Shares grid a multiprocessor should get
// before blocks are given more than one item each. With more items a block does its setup less
// often, such as computing a step's numbers, but too few blocks leave multiprocessors idle.
const blocksPerMultiprocessor = 16

// lowerShares returns the call of a kernel whose blocks share items.
func (p *planner) lowerShares(c tensor.Call, g tensor.Shares) Call {
	// The largest number of items per block that still gives every multiprocessor
	// blocksPerMultiprocessor blocks, counting all chains.
	each := max(1, min(g.Items*p.Chains/(blocksPerMultiprocessor*max(1, p.Multiprocessors)), g.MaxItems))
	s := Call{Symbol: c.Kernel, Blocks: [2]int{ceilDiv(g.Items, each), 1}, Threads: roundUpToWarps(g.Threads), Arguments: c.Arguments}
	if g.Rows { // one row so far; fuseRows may add others
		s.RowEnds = []int{s.Blocks[0]}
	}
	return s
}
