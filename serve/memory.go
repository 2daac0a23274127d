package serve

import (
	"runtime"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

// Memory of images that are being decoded.
const (
	// smallMemory is the maximum number of bytes that decoding a small image allocates, and
	// smallPixels the maximum number of its pixels: an image with few bytes per pixel still takes
	// time for its pixels.
	smallMemory = 16 << 20
	smallPixels = 900 * 900
	// The memory for decoding large images is the larger of two bounds. memoryPerPixel is for an
	// image of MaxPixels in any format; treesPerPixel and treesBase are for a lossless WebP
	// image, which has up to 137 MiB of Huffman trees.
	memoryPerPixel = 36
	treesPerPixel  = 16
	treesBase      = 256 << 20
)

// A server uses at most half of the memory that is available once its predictor is loaded. The
// other half is for garbage that has not been collected yet, and for connections. Of the server's
// half, a quarter is for bodies, a quarter for decoding small images, and the rest for decoding
// large ones.
const (
	serverShare = 2
	partShare   = 4
	growing     = 2 // an arriving body is copied when its memory grows
)

// decoding is the memory for images that are being decoded.
type decoding struct {
	workers int // maximum number of small images, and of large ones, that are decoded at a time
	large   int // bytes for all large images
}

// withinMemory returns the options, reduced to the available memory if necessary, and the memory
// for decoding. It reports a reduction to Options.Report.
func (o Options) withinMemory(available memory.Limit) (Options, decoding) {
	d := decoding{
		workers: 2 * runtime.GOMAXPROCS(0),
		large:   max(memoryPerPixel*o.MaxPixels, treesPerPixel*o.MaxPixels+treesBase),
	}
	if !available.Known() {
		return o, d
	}
	half := int(available.Bytes / serverShare)
	part := max(half/partShare, smallMemory)
	asked := o.Memory + d.workers*smallMemory + d.large
	if asked <= half {
		return o, d
	}
	o.Memory = min(o.Memory, part)
	o.MaxBody = min(o.MaxBody, o.Memory/growing)
	d.workers = max(min(d.workers, part/smallMemory), 1)
	d.large = min(d.large, max(half-o.Memory-d.workers*smallMemory, part))
	o.Report(errors.Errorf("serve: %s of memory are available (%s), and requests may use half of it, where all limits together would allow %s: "+
		"bodies have %s, small images %s, large images %s, and images that take more are refused",
		memory.Size(available.Bytes), available.Reason, memory.Size(int64(asked)), memory.Size(int64(o.Memory)),
		memory.Size(int64(d.workers*smallMemory)), memory.Size(int64(d.large))))
	return o, d
}
