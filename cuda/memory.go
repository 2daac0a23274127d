package cuda

import (
	"fmt"
	"unsafe"
)

// allocationGranularity is the unit to which cuMemAlloc rounds up.
const allocationGranularity = 2 << 20

// OutOfMemory is the error of loading a workload whose chains do not fit into the GPU's memory.
type OutOfMemory struct {
	GPU      string
	Chains   int    // that were requested
	Fit      int    // the most chains that would fit, perhaps 0
	PerChain uint64 // bytes of each chain: parameters and state, twice if Keep is used, and scratch memory
	Shared   uint64 // bytes that all chains share
	Free     uint64 // bytes that the GPU had
}

// Error implements error.
func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("cuda: %d chains of %s each, and %s that they share, do not fit on %s, which has %s free: at most %d chains fit",
		e.Chains, size(e.PerChain), size(e.Shared), e.GPU, size(e.Free), e.Fit)
}

// maxChains returns how many chains fit. Each of the three arenas may waste up to one granule.
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

// allocate returns zeroed memory. The caller must free it even if allocate also returns an error:
// the memory may have been allocated and not cleared.
func (g *gpu) allocate(bytes uint64) (memory address, err error) {
	if err := g.check("cuMemAlloc_v2", g.cuMemAlloc_v2(&memory, bytes)); err != nil {
		return 0, err
	}
	return memory, g.check("cuMemsetD8Async", g.cuMemsetD8Async(memory, 0, bytes, g.stream))
}

// stagingSlice returns part of the staging memory.
func (g *gpu) stagingSlice(at, bytes int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(g.staging, at)), bytes)
}

// write copies src to the GPU, ordered by the stream. It returns once src may be reused, without
// waiting for the copy; a failure is reported by the next synchronize.
func (g *gpu) write(to address, src []byte) error {
	for len(src) > 0 {
		n := min(len(src), g.stagingHalf)
		if g.stagingUsed+n > 2*g.stagingHalf { // earlier copies still read the staging memory
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

// read waits for the stream, then copies from the GPU. While the GPU fills one half of the staging
// memory, the host copies the other half to dst.
//
// Samples are read in this way, too, instead of by a second stream during the next steps. The 230
// MB of 64 chains of a million parameters take 5 ms on the bus and another 5 ms for 512 synchronous
// calls, while writing their files takes a second.
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
