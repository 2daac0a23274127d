package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// Call is one launch of a kernel. Its grid is Blocks[0] x Blocks[1] x chains.
type Call struct {
	Symbol    string // of the kernel
	Blocks    [2]int // for each chain
	Threads   int    // of a block
	Shared    int    // bytes of dynamic shared memory of a block
	Arguments []tensor.Argument
	Cycles    float64 // clock cycles that a product is estimated to take, all chains together; 0 for other kernels
	Launch    int     // index of the launch whose work this is; the last of them if it does several launches' work

	// RowEnds is set for a kernel that takes rows of arguments. Arguments then holds len(RowEnds)
	// rows of equal length, and row i belongs to the blocks from RowEnds[i-1] to RowEnds[i]-1.
	RowEnds []int

	droppable   *droppable // a result that need not be written, or nil
	sharedBytes int        // bytes that each chain reads of shared buffers and that Bytes would leave out otherwise
}

// droppable is a result that a call need not write. A pooled convolution, for example, may write
// both the maxima and the packed copy that the next convolution reads. If nothing else reads the
// maxima, the kernel that writes only the copy takes its place.
type droppable struct {
	result  *tensor.Buffer
	without Call // the call that does not write it
}

// Rows returns the rows of a call's arguments.
func (c Call) Rows() [][]tensor.Argument {
	return slices.Collect(slices.Chunk(c.Arguments, len(c.Arguments)/len(c.RowEnds)))
}

// Bytes returns how many bytes a call reads and writes for one chain, counting each buffer once for
// reading and once for writing. Buffers that all chains share are not counted, because most calls
// read at most as much of them as they write elsewhere, for example when they gather a minibatch.
// Products that read images from the data set are the exception.
func (c Call) Bytes() float64 {
	seen := map[*tensor.Buffer]tensor.Access{}
	for _, a := range c.Arguments {
		if a.Buffer != nil && a.Buffer.Arena != tensor.Shared {
			seen[a.Buffer] |= a.Access
		}
	}
	bytes := float64(c.sharedBytes)
	for b, access := range seen {
		for _, way := range []tensor.Access{tensor.Read, tensor.Write} {
			if access&way != 0 {
				bytes += float64(b.Bytes())
			}
		}
	}
	return bytes
}

// ElementsWritten returns the number of elements of an update or an elementwise call: the elements
// of the largest buffer that it writes, summed over its rows of arguments.
func (c Call) ElementsWritten() (all int) {
	rows := [][]tensor.Argument{c.Arguments}
	if c.RowEnds != nil {
		rows = c.Rows()
	}
	for _, row := range rows {
		most := 0
		for _, a := range row {
			if a.Buffer != nil && a.Access&tensor.Write != 0 {
				most = max(most, a.Buffer.Elements)
			}
		}
		all += most
	}
	return all
}
