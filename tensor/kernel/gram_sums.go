package kernel

// gramLanes is the number of interleaved partial sums of an inner product, and gramColumns the
// number of columns that are summed at a time: in float64, a few hundred rows of them stay in the
// second-level cache. These rows are gramStride apart, since rows at multiples of 4 KiB compete for
// the same lines of the first-level cache.
const (
	gramLanes   = 8
	gramColumns = 512
	gramStride  = gramColumns + gramLanes
)

// gramSums are the inner products of a tile of rows, at most 4 x 4.
type gramSums [16]float64
