package serve

import (
	"runtime"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

// Memory of images that are being decoded.
const (
	// smallMemory is the most bytes that decoding a small image allocates, and smallPixels the most
	// pixels that it has: an image of few bytes per pixel still takes the time of its pixels.
	smallMemory = 16 << 20
	smallPixels = 900 * 900
	// memoryPerPixel is for an image of MaxPixels in any format; treesPerPixel and treesBase are
	// for a lossless WebP image, which has up to 137 MiB of Huffman trees. The larger bounds the
	// bytes that decoding all images but small ones allocates.
	memoryPerPixel = 36
	treesPerPixel  = 16
	treesBase      = 256 << 20
)

// A server uses at most half of the memory that is available once its predictor is loaded: the
// other half is for garbage that is not collected yet, and for connections. A quarter of its half
// is for bodies, a quarter for small images that are being decoded, the rest for large ones.
const (
	serverShare = 2
	partShare   = 4
	growing     = 2 // a body that arrives is copied when its memory grows
)

// decoding is the memory for images that are being decoded.
type decoding struct {
	workers int // of small images, and at most of large ones
	large   int // bytes of all large images
}

// withinMemory returns the options and the memory for decoding of a server that has the available
// memory. What the options ask for is reduced if that is too much, which is reported.
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
