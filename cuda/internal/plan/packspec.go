package plan

import "github.com/pollen-ml/pollen/tensor"

// Convolutions in tf32 and bf16 may work on packed copies of their operands (kernels/nhwc.cuh). A
// copy has channels last, rounded once, in lines of 128 bytes: 32 channels of tf32 or 64 of bf16.
// An image has a line for each pixel, padding included, for each block of 32 or 64 channels.
//
// For example, a 5 x 5 convolution with padding 2 of 64 channels of 14 x 14 pixels, in bf16, gets a
// copy of 18 x 18 lines per image. The pixel at (p, q) of the result needs, for tap (r, s), the
// line (p+r)*18 + q+s: another tap needs the same lines shifted by r*18 + s. So a block copies a
// range of lines to shared memory once, for all 25 taps, and looks up no address.
// kernels/im2col.cuh, which reads images as they are, computes an address and checks the border for
// every element.
//
// A copy is workspace. Launches of a step that read the same copy share it, so that the forward
// convolution's copy of an image also serves the filter's gradient.

const (
	lineWords     = 32
	lineBytes     = 4 * lineWords
	packedLines   = 32 // lines that a block packs
	packedWindows = 32 // windows whose elements a block packs in chunks
)

func channelsPerLine(p Precision) int {
	if p == BF16 {
		return 2 * lineWords
	}
	return lineWords
}

// packSpec describes a packed copy of planes x channels x height x width numbers. For images a
// plane is an image; for filters it is a filter, with its taps as width.
type packSpec struct {
	planes, channels           int
	planeStride, channelStride int    // in elements of what is copied
	height, width              int    // of a channel
	top, left                  int    // rows and columns of zeros before a plane's; if negative, rows and columns that are left out
	rows, columns              int    // of lines in a plane, padding included
	spread                     [2]int // if not 0: rows and columns are this far apart, with zeros in between, as for the image's gradient with strides
	blocksFirst                bool   // lines are ordered by block of channels, then plane; otherwise by plane, then block
	chunks                     lineLayout
}

// lineLayout is the arrangement of the 128 bytes of lines in memory. Kernels by wgmma
// (kernels/nhwcgroup.cuh) need them in chunks of 16 bytes, with the first chunks of many lines one
// behind the other, then all the second ones. The first chunks of any eight neighbouring lines are
// then a core matrix, as the PTX ISA calls the 8 x 16 bytes that a matrix descriptor without
// swizzling is made of, wherever the first of them is.
type lineLayout int

const (
	wholeLines   lineLayout = iota
	imageChunks             // the chunks of all lines of a block of channels
	filterChunks            // the chunks of wgmmaRows filters, for each tap
)

// wgmmaRows is the number of rows, filters here, that a wgmma multiplies.
const wgmmaRows = 64

// lines is the number of lines of one block of channels.
func (k packSpec) lines() int { return k.planes * k.rows * k.columns }

// packKey identifies a packed copy.
type packKey struct {
	from *tensor.Buffer
	packSpec
}

// coversOnce reports whether the copy has every element of contiguous planes exactly once, so that
// sums over it are sums over the original.
func (k packSpec) coversOnce() bool {
	height, width := (k.height-1)*max(1, k.spread[0])+1, (k.width-1)*max(1, k.spread[1])+1
	inside := min(k.top, k.left) >= 0 && k.top+height <= k.rows && k.left+width <= k.columns
	return inside && k.channelStride == k.height*k.width && k.planeStride == k.channels*k.channelStride
}
