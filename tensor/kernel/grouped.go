package kernel

import "github.com/pkg/errors"

// GroupedConv2D is a convolution within groups of channels: Conv2D has the sizes of all groups
// together, with filters w [K C/Groups R S], and filter k reads only the channels of group
//
//	g = floor(k Groups / K).
//
// Groups must divide C and K. With Groups = C it is a depthwise convolution.
type GroupedConv2D struct {
	Conv2D
	Groups int
}

// Validate returns an error for groups that do not divide C and K, and the errors of
// [Conv2D.Validate].
func (g GroupedConv2D) Validate() error {
	if g.Groups < 1 || g.C%g.Groups != 0 || g.K%g.Groups != 0 {
		return errors.Errorf("kernel: grouped conv2d: Groups must be at least 1 and divide C = %d and K = %d, got %d", g.C, g.K, g.Groups)
	}
	return g.Conv2D.Validate()
}

func (g GroupedConv2D) validateBackward() error {
	if err := g.Validate(); err != nil {
		return err
	}
	return g.Conv2D.validateBackward()
}

func (g GroupedConv2D) sizeW() int { return g.Conv2D.sizeW() / g.Groups }

// group returns the convolution of one group of one image.
func (g GroupedConv2D) group() Conv2D {
	c := g.Conv2D
	c.B, c.C, c.K = 1, g.C/g.Groups, g.K/g.Groups
	return c
}

// partialSums divides the images into ranges whose gradients of filters are summed separately. It
// returns the first image of each, and the end.
func (g GroupedConv2D) partialSums() (images []int) {
	parts := max(1, min(g.B, tileCount, partialElements/g.sizeW()))
	for i := range parts + 1 {
		lo, _ := splitRange(g.B, parts, i)
		images = append(images, lo)
	}
	return images
}

func combineTiles(elements int) int { return min(ceilDiv(elements, panelColumns), tileCount) }
