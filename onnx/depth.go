package onnx

import (
	"github.com/pkg/errors"
)

// depthToSpace translates DepthToSpace: the channels of an image become blocks of pixels.
func depthToSpace(t *translator, x value) (value, error) {
	shape, size, err := t.blocks(x)
	if err != nil {
		return value{}, err
	}
	channels := shape[1] / (size * size)
	if channels*size*size != shape[1] {
		return value{}, errors.Errorf("the square of blocksize %d must divide the channels of %v", size, shape)
	}
	neighbours, err := t.blocksOfNeighbours()
	if err != nil {
		return value{}, err
	}
	split, order := []int{shape[0], size, size, channels, shape[2], shape[3]}, []int{0, 3, 4, 1, 5, 2}
	if neighbours {
		split, order = []int{shape[0], channels, size, size, shape[2], shape[3]}, []int{0, 1, 4, 2, 5, 3}
	}
	return t.reordered(x, split, order, []int{shape[0], channels, shape[2] * size, shape[3] * size})
}

// spaceToDepth translates SpaceToDepth, the inverse of DepthToSpace.
func spaceToDepth(t *translator, x value) (value, error) {
	shape, size, err := t.blocks(x)
	if err != nil {
		return value{}, err
	}
	height, width := shape[2]/size, shape[3]/size
	if height*size != shape[2] || width*size != shape[3] {
		return value{}, errors.Errorf("blocksize %d must divide the height and the width of %v", size, shape)
	}
	neighbours, err := t.blocksOfNeighbours()
	if err != nil {
		return value{}, err
	}
	order := []int{0, 3, 5, 1, 2, 4}
	if neighbours {
		order = []int{0, 1, 3, 5, 2, 4}
	}
	return t.reordered(x, []int{shape[0], shape[1], height, size, width, size}, order, []int{shape[0], shape[1] * size * size, height, width})
}

// blocks returns the shape of images and the attribute blocksize.
func (t *translator) blocks(x value) (shape []int, size int, err error) {
	shape, size = x.shape(), t.integer("blocksize", 0)
	if len(shape) != 4 || size < 1 {
		return nil, 0, errors.Errorf("blocksize must be at least 1, and the shape [B C H W], got %d and %v", size, shape)
	}
	return shape, size, t.keepsExamplesApart(1, len(shape))
}

// blocksOfNeighbours reports whether neighbouring channels are a block of pixels, as in PyTorch's
// PixelShuffle, rather than channels with a distance between them.
func (t *translator) blocksOfNeighbours() (bool, error) {
	mode := t.text("mode", "DCR")
	if mode != "DCR" && mode != "CRD" {
		return false, errors.Errorf("mode must be DCR or CRD, got %q", mode)
	}
	return mode == "CRD", nil
}

// reordered splits the axes of a value, permutes the parts, and joins them to another shape.
func (t *translator) reordered(x value, split, order, shape []int) (value, error) {
	x, err := t.reshaped(x, split)
	if err != nil {
		return value{}, err
	}
	if x, err = t.transposed(x, order); err != nil {
		return value{}, err
	}
	return t.reshaped(x, shape)
}
