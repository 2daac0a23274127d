package cuda

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// checkSignature returns an error if a call's arguments or block do not fit its kernel. The driver
// checks neither the number nor the types of arguments, and would read whatever lies in memory.
func checkSignature(e kernels.Entry, c plan.Call) error {
	if err := checkRows(e, c); err != nil {
		return err
	}
	if c.RowEnds == nil && len(c.Arguments) != len(e.Parameters) {
		return errors.Errorf("cuda: %s has %d parameters, got %d arguments", e.Name, len(e.Parameters), len(c.Arguments))
	}
	for i := range e.Parameters {
		a := c.Arguments[i]
		if got := kernels.ParameterOf(a); got != e.Parameters[i] {
			return errors.Errorf("cuda: parameter %d of %s must be a %s, got a %s", i, e.Name, e.Parameters[i], got)
		}
	}
	if c.Threads > e.Threads {
		return errors.Errorf("cuda: %s takes blocks of at most %d threads, got %d", e.Name, e.Threads, c.Threads)
	}
	return nil
}

// The largest grid, on all GPUs since compute capability 3.0.
const (
	maxBlocksX  = 1<<31 - 1
	maxBlocksYZ = 1<<16 - 1 // of the other dimensions; the third is the chains
)

// maxElements limits a chain's buffer. Kernels count elements in 32 bits, and a grid-stride loop
// counts up to a whole grid's threads past the last element.
const maxElements = 1<<31 - 1<<21

// checkGrid returns an error if the driver would not launch the call's grid, or if a buffer is too
// large for kernels to count its elements.
func checkGrid(c plan.Call, chains int) error {
	for i, a := range c.Arguments {
		if b := a.Buffer; b != nil && b.Arena != tensor.Shared && b.Elements > maxElements {
			return errors.Errorf("cuda: argument %d of %s must have at most %[4]d elements, got %[3]d: reduce the batch size", i, c.Symbol, b.Elements, maxElements)
		}
	}
	if c.Blocks[0] < 1 || c.Blocks[0] > maxBlocksX || c.Blocks[1] > maxBlocksYZ || chains > maxBlocksYZ {
		return errors.Errorf("cuda: %s: the grid of %v blocks x %d chains must be at least 1 x 1 x 1 and at most %d x %d x %d",
			c.Symbol, c.Blocks, chains, maxBlocksX, maxBlocksYZ, maxBlocksYZ)
	}
	return nil
}

// entry returns a kernel's parameters and limits, if the file is known to have it.
func (s *ptxFile) entry(symbol string) (kernels.Entry, bool) {
	if s == nil {
		return kernels.Entry{}, false
	}
	e, known := s.entries[symbol]
	return e, known
}
