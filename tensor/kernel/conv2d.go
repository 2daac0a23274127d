package kernel

import "github.com/pkg/errors"

// Conv2D describes a two-dimensional cross-correlation, the convolution of neural networks:
//
//	y[b k p q] = f(bias[k] + sum_{c r s} w[k c r s]
//	             x[b c p*StrideH+r*DilationH-PadH q*StrideW+s*DilationW-PadW])
//
// with x [B C H W], w [K C R S], y [B K P Q]. x is zero outside its bounds, and f is the ReLU if
// ReLU is set, with the upper bound Ceiling if that is not 0. Bias, ReLU and Ceiling belong to the
// forward direction; the backward directions refuse them.
type Conv2D struct {
	B, C, H, W, K, R, S  int
	StrideH, StrideW     int
	PadH, PadW           int
	DilationH, DilationW int
	// TrailH and TrailW are added to the padding below and to the right of images: there are PadH
	// rows of zeros above an image, and PadH+TrailH below.
	TrailH, TrailW int
	Bias, ReLU     bool
	Ceiling        float32
	// Direct excludes Winograd's algorithms, whose rounding errors are two to four times as large.
	Direct bool
	// FilterImages is the number of images, B if it is 0, for which Winograd's algorithms transform
	// a filter. It may be more than B if the workspace is kept, see Routine.Preparation.
	FilterImages int
}

// P returns the height of the output, 0 if the filter does not fit once.
func (c Conv2D) P() int { return outputSize(c.H+c.TrailH, c.R, c.StrideH, c.PadH, c.DilationH) }

// Q returns the width of the output, 0 if the filter does not fit once.
func (c Conv2D) Q() int { return outputSize(c.W+c.TrailW, c.S, c.StrideW, c.PadW, c.DilationW) }

// outputSize returns the number of positions of a window along one axis.
func outputSize(size, taps, stride, pad, dilation int) int {
	room := size + 2*pad - (taps-1)*dilation - 1
	if room < 0 || stride < 1 {
		return 0
	}
	return room/stride + 1
}

// Validate returns an error for sizes, strides and dilations below 1, a padding below 0, a filter
// larger than the padded image, and tensors of 2^31 elements or more.
func (c Conv2D) Validate() error {
	if min(c.B, c.C, c.H, c.W, c.K, c.R, c.S) < 1 {
		return errors.Errorf("kernel: conv2d: B, C, H, W, K, R, S must be at least 1, got %d, %d, %d, %d, %d, %d, %d",
			c.B, c.C, c.H, c.W, c.K, c.R, c.S)
	}
	if min(c.StrideH, c.StrideW, c.DilationH, c.DilationW) < 1 || min(c.PadH, c.PadW) < 0 {
		return errors.Errorf("kernel: conv2d: stride and dilation must be at least 1 and padding at least 0, got %d x %d, %d x %d and %d x %d",
			c.StrideH, c.StrideW, c.DilationH, c.DilationW, c.PadH, c.PadW)
	}
	if max(c.StrideH, c.StrideW, c.DilationH, c.DilationW, c.PadH, c.PadW, c.R, c.S) > 1<<20 {
		return errors.Errorf("kernel: conv2d: filter sizes, strides, dilations and padding must be at most %d", 1<<20)
	}
	if c.PadH+c.TrailH < 0 || c.PadW+c.TrailW < 0 || max(c.TrailH, c.TrailW) > 1<<20 {
		return errors.Errorf("kernel: conv2d: padding after images must be in [0, %d], got %d x %d", 1<<20, c.PadH+c.TrailH, c.PadW+c.TrailW)
	}
	if !(c.Ceiling >= 0) || c.Ceiling > 0 && !c.ReLU {
		return errors.Errorf("kernel: conv2d: Ceiling must be at least 0, and 0 without ReLU, got %v", c.Ceiling)
	}
	if c.P() < 1 || c.Q() < 1 {
		return errors.Errorf("kernel: conv2d: a filter of %d x %d with dilation %d x %d does not fit into an image of %d x %d "+
			"with padding %d x %d and %d x %d after it", c.R, c.S, c.DilationH, c.DilationW, c.H, c.W, c.PadH, c.PadW, c.PadH+c.TrailH, c.PadW+c.TrailW)
	}
	for _, s := range [][]int{
		{c.B, c.C, c.H, c.W}, {c.K, c.C, c.R, c.S}, {c.B, c.K, c.P(), c.Q()},
		{c.C, c.H + 2*c.PadH + c.TrailH, c.W + 2*c.PadW + c.TrailW},
		{c.K, c.H + 2*c.DilationH*c.R, c.W + 2*c.DilationW*c.S},
	} {
		if !fits(s...) {
			return errors.Errorf("kernel: conv2d: a tensor must have at most %d elements, got shape %v", maxElements, s)
		}
	}
	return nil
}

// validateBackward also refuses the epilogue: the gradients of a bias and of a ReLU are not
// computed here.
func (c Conv2D) validateBackward() error {
	if c.Bias || c.ReLU {
		return errors.Errorf("kernel: conv2d: Bias and ReLU must be false for a backward direction, got %t and %t", c.Bias, c.ReLU)
	}
	return c.Validate()
}

func (c Conv2D) sizeX() int { return c.B * c.C * c.H * c.W }
func (c Conv2D) sizeW() int { return c.K * c.C * c.R * c.S }
func (c Conv2D) sizeY() int { return c.B * c.K * c.P() * c.Q() }

// imageWindow returns the window of a filter that slides over x.
func (c Conv2D) imageWindow() window {
	return window{
		channels: c.C, height: c.H, width: c.W,
		spacingH: 1, spacingW: 1, padH: c.PadH, padW: c.PadW,
		batch: c.B, outH: c.P(), outW: c.Q(),
	}
}

// axes returns the filter's two axes in the forward direction.
func (c Conv2D) axes() (vertical, horizontal axis) {
	return axis{c.R, c.DilationH, c.StrideH}, axis{c.S, c.DilationW, c.StrideW}
}
