package cuda

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// matches refuses a call that does not fit its kernel in the number, kind and order of arguments or
// in the size of its blocks. The driver knows no types: it would take whatever lies in memory.
func checkSignature(e kernels.Entry, c plan.Call) error {
	if err := checkRows(e, c); err != nil {
		return err
	}
	if c.RowEnds == nil && len(c.Arguments) != len(e.Parameters) {
		return errors.Errorf("cuda: %s has %d parameters, the launch %d arguments", e.Name, len(e.Parameters), len(c.Arguments))
	}
	for i := range e.Parameters {
		a := c.Arguments[i]
		if got := kernels.ParameterOf(a); got != e.Parameters[i] {
			return errors.Errorf("cuda: parameter %d of %s is a %s, the launch has a %s", i, e.Name, e.Parameters[i], got)
		}
	}
	if c.Threads > e.Threads {
		return errors.Errorf("cuda: %s takes blocks of at most %d threads, the launch has %d", e.Name, e.Threads, c.Threads)
	}
	return nil
}

// The largest grids of all GPUs since compute capability 3.0.
const (
	maxBlocksX  = 1<<31 - 1
	maxBlocksYZ = 1<<16 - 1 // of the other dimensions; the third is the chains
)

// maxElements is the most that a chain's buffer may have: kernels count elements in 32 bits, and
// up to a grid's threads beyond the last.
const maxElements = 1<<31 - 1<<21

// startable refuses a grid that the driver would not start, and buffers that kernels cannot count.
func checkGrid(c plan.Call, chains int) error {
	for i, a := range c.Arguments {
		if b := a.Buffer; b != nil && b.Arena != tensor.Shared && b.Elements > maxElements {
			return errors.Errorf("cuda: argument %d of %s has %d elements, wants at most %d: make the batch smaller", i, c.Symbol, b.Elements, maxElements)
		}
	}
	if c.Blocks[0] < 1 || c.Blocks[0] > maxBlocksX || c.Blocks[1] > maxBlocksYZ || chains > maxBlocksYZ {
		return errors.Errorf("cuda: %s has %v blocks for each of %d chains, wants at least 1 and at most %d, %d and %d chains",
			c.Symbol, c.Blocks, chains, maxBlocksX, maxBlocksYZ, maxBlocksYZ)
	}
	return nil
}

// entry is what is known of a kernel in the file.
func (s *ptxFile) entry(symbol string) (kernels.Entry, bool) {
	if s == nil {
		return kernels.Entry{}, false
	}
	e, known := s.entries[symbol]
	return e, known
}
