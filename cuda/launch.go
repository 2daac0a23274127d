package cuda

import (
	"encoding/binary"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// launchAndWait launches the calls of one launch for some of the shard's chains, and waits. An
// error names the launch.
func (p *shard) launchAndWait(calls []boundCall, chain, chains int) error {
	p.readback.valid = false
	if err := p.launchAll(calls, chain, chains); err != nil {
		return err
	}
	err := p.synchronize()
	if err != nil && len(calls) > 0 {
		return inLaunch(err, &p.launches[calls[0].Launch])
	}
	return err
}

// launchAll launches calls one by one for some of the shard's chains, without waiting.
func (p *shard) launchAll(calls []boundCall, chain, chains int) error {
	for _, c := range calls {
		n := p.node(c, chain, chains)
		code := p.cuLaunchKernel(n.function, n.grid, n.block, n.shared, p.stream, n.parameters)
		if err := p.check("cuLaunchKernel", code); err != nil {
			return p.callError(err, c, n)
		}
	}
	return nil
}

// callError wraps an error with the call that caused it.
func (p *shard) callError(err error, c boundCall, n kernelNode) error {
	err = errors.Wrapf(err, "%s, %v blocks of %d threads, %d bytes of shared memory", c.Symbol, n.grid, c.Threads, c.Shared)
	return inLaunch(err, &p.launches[c.Launch])
}

// node returns the driver's description of a call for the chains [chain, chain+chains), which are
// the grid's third dimension.
func (p *shard) node(c boundCall, chain, chains int) kernelNode {
	values, places := p.parameters(c.Call, chain)
	pointers := make([]unsafe.Pointer, len(places)+1)
	for j, place := range places {
		pointers[j] = unsafe.Pointer(&values[place])
	}
	return kernelNode{
		function: c.function, grid: [3]uint32{uint32(c.Blocks[0]), uint32(max(1, c.Blocks[1])), uint32(chains)},
		block: [3]uint32{uint32(c.Threads), 1, 1}, shared: uint32(c.Shared), parameters: &pointers[0],
	}
}

// parameters returns the values of a kernel's parameters and the byte offset of each. A buffer is
// passed as an address and a stride, struct { T *base; uint64 stride } in the kernels, which add
// blockIdx.z strides to the address. Every value takes 16 bytes here; the driver reads only the
// size of the kernel's parameter.
func (p *shard) parameters(c plan.Call, chain int) (values []byte, places []int) {
	value := func(a tensor.Argument) (low, high uint64) {
		b := a.Buffer
		if b == nil {
			return a.Bits, 0
		}
		high = p.stride[b.Arena]
		return uint64(p.memory[b.Arena]) + uint64(b.Offset) + uint64(chain)*high, high
	}
	if c.RowEnds != nil {
		return rowsParameter(c, value), []int{0}
	}
	values = make([]byte, 0, 16*len(c.Arguments))
	for _, a := range c.Arguments {
		places = append(places, len(values))
		low, high := value(a)
		values = binary.NativeEndian.AppendUint64(values, low)
		values = binary.NativeEndian.AppendUint64(values, high)
	}
	return values, places
}
