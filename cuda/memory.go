package cuda

import (
	"fmt"
	"unsafe"
)

// granule is the unit to which the driver rounds up the memory it gives.
const allocationGranularity = 2 << 20

// OutOfMemory is the error of a schedule that does not fit.
type OutOfMemory struct {
	GPU      string
	Chains   int    // asked for
	Fit      int    // how many would fit, 0 if none
	PerChain uint64 // bytes each takes: parameters and state, perhaps twice, activations, workspace
	Shared   uint64 // bytes for all of them
	Free     uint64 // bytes the GPU had
}

// Error implements error.
func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("cuda: %d chains of %s each and %s for all of them do not fit on %s, which has %s free: at most %d chains do",
		e.Chains, size(e.PerChain), size(e.Shared), e.GPU, size(e.Free), e.Fit)
}

// fit is how many chains there is room for.
func (e *OutOfMemory) maxChains() int {
	round := func(bytes uint64) uint64 {
		return (bytes + allocationGranularity - 1) / allocationGranularity * allocationGranularity
	}
	taken := round(e.Shared) + 3*allocationGranularity
	if e.Free < taken || e.PerChain == 0 {
		return 0
	}
	return int((e.Free - taken) / e.PerChain)
}

// allocate takes zeroed memory. What it returns must be freed, even if there is an error.
func (g *gpu) allocate(bytes uint64) (memory address, err error) {
	if err := g.check("cuMemAlloc_v2", g.cuMemAlloc_v2(&memory, bytes)); err != nil {
		return 0, err
	}
	return memory, g.check("cuMemsetD8Async", g.cuMemsetD8Async(memory, 0, bytes, g.stream))
}

// stage is a piece of the staging memory.
func (g *gpu) stagingSlice(at, bytes int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(g.staging, at)), bytes)
}

// write copies src to the GPU in the stream's order. It returns when src may change; later failures
// are errors of the next synchronisation.
func (g *gpu) write(to address, src []byte) error {
	for len(src) > 0 {
		n := min(len(src), g.stagingHalf)
		if g.stagingUsed+n > 2*g.stagingHalf {
			if err := g.synchronize(); err != nil {
				return err
			}
		}
		at := g.stagingUsed
		copy(g.stagingSlice(at, n), src)
		if err := g.check("cuMemcpyHtoDAsync_v2", g.cuMemcpyHtoDAsync_v2(to, unsafe.Add(g.staging, at), uint64(n), g.stream)); err != nil {
			return err
		}
		g.stagingUsed += n
		to += address(n)
		src = src[n:]
	}
	return nil
}

// read waits for the stream and copies from the GPU: while one half of the staging memory is
// emptied, the other is filled.
//
// Samples are read this way too, without a second stream beside the next steps: 64 chains of a
// million parameters are 230 MB, which take 5 ms on the bus and as much for 512 calls that wait,
// while writing their files takes a second.
func (g *gpu) read(from address, dst []byte) error {
	if g.stagingUsed > 0 {
		if err := g.synchronize(); err != nil {
			return err
		}
	}
	fetch := func(first, slot int) error {
		n := min(len(dst)-first, g.stagingHalf)
		to := unsafe.Add(g.staging, slot*g.stagingHalf)
		return g.check("cuMemcpyDtoHAsync_v2", g.cuMemcpyDtoHAsync_v2(to, from+address(first), uint64(n), g.stream))
	}
	if len(dst) == 0 {
		return nil
	}
	if err := fetch(0, 0); err != nil {
		return err
	}
	for first, slot := 0, 0; first < len(dst); first, slot = first+g.stagingHalf, 1-slot {
		if err := g.synchronize(); err != nil {
			return err
		}
		if next := first + g.stagingHalf; next < len(dst) {
			if err := fetch(next, 1-slot); err != nil {
				return err
			}
		}
		n := min(len(dst)-first, g.stagingHalf)
		copy(dst[first:first+n], g.stagingSlice(slot*g.stagingHalf, n))
	}
	return nil
}
