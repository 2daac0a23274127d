package plan

// speed is the rate at which a multiprocessor performs a kernel's arithmetic, in units of
// macsPerCycle, the rate of the ordinary FP32 cores. full is the speed with all resident blocks,
// single the speed with one block, which cannot hide its own latencies.
type speed struct{ full, single float64 }

// limitedTo returns the speed of a tile with resident blocks per multiprocessor. full was measured
// or estimated with several.
func (s speed) limitedTo(resident int) speed {
	if resident == 1 {
		s.full = s.single
	}
	return s
}

// cycles estimates the cycles that blocks take, with resident of them per multiprocessor. work is
// the cycles of one block at speed 1, and bytes is the number of bytes that it reads from the
// second-level cache. A multiprocessor works through its share of the blocks as fast as its
// arithmetic or the cache allows, but no faster than a single block; and each wave of resident
// blocks has an overhead.
func (s speed) cycles(p *planner, blocks, resident int, work, bytes float64) float64 {
	share := ceilDiv(blocks, max(1, p.Multiprocessors))
	return max(work/s.single, float64(share)*max(work/s.full, bytes/bytesPerCycle)) + float64(ceilDiv(share, resident))*cyclesPerWave
}

// The constants of the cost model, in clock cycles. They are estimates for an H200, which has 132
// multiprocessors at 1.8 GHz.
const (
	macsPerCycle        = 128.0  // multiplications and additions, on the ordinary cores of a multiprocessor
	cyclesPerWave       = 2500.0 // for blocks to begin, to fill their pipeline of stages and to write their sums
	CyclesPerLaunch     = 3000.0 // for one more kernel that follows another
	cyclesPerSlice      = 80.0   // to add one more slice: sixteen loads are in flight at once
	cyclesPerElement    = 0.006  // to write and read an element of the workspace: 8 bytes of the GPU's some 1300 per cycle
	bytesPerCycle       = 24.0   // that a multiprocessor gets from the second-level cache
	sharedBytesPerCycle = 128.0  // that a multiprocessor gets from its shared memory
	loadLatency         = 800.0  // for loads that are issued together to come from the second-level cache
)

// manyChains is a number of chains that fills a GPU. NVIDIA does not document in which order wgmma
// adds its products, so the choice of a convolution's kernel must not depend on the number of
// chains. The kernel with the lower product of the costs for one chain and for manyChains is used.
const manyChains = 64
