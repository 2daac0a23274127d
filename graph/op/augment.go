package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Augment transforms each image of a batch at random: x [B C H W], header -> y [B C H W]. It
// rotates the image about its centre by an angle a and enlarges it by a factor z, translates it by
// whole numbers of rows and columns, flips it horizontally, changes contrast and brightness, and
// erases a square, the same in all channels:
//
//	y[b c p q] = 0 in the square, else contrast x[b c u v] + brightness
//	(u, v) = ((H-1)/2 + (r cos a - s sin a)/z, (W-1)/2 + (r sin a + s cos a)/z)
//	r = p - rows - (H-1)/2,  s = q' - columns - (W-1)/2,  q' = q, or W-1-q when flipped
//
// Between pixels x is interpolated bilinearly. Beyond the edges it is 0, which is the mean of
// images that GatherImages has normalised. Without Rotation, Zoom, Contrast and Brightness pixels
// keep their bits.
//
// Image b uses elements 8b to 8b+7 of the stream (seed, chain, step, Stream), so that it has the
// same transform with any number of threads and on every device. It has no gradient: x is data.
// Sources: He et al., Deep residual learning (2016), for flips and translations; DeVries and
// Taylor, Improved regularization of convolutional neural networks with cutout (2017), for the
// square.
type Augment struct {
	Flip     bool    // flip left to right with probability 1/2
	Shift    int     // pixels: rows and columns are uniform on -Shift to Shift
	Rotation float64 // degrees, at most 180: the angle is uniform on -Rotation to Rotation
	// Zoom is at most 4. The image is enlarged or shrunk, with equal probability, by a factor
	// uniform on 1 to 1 + Zoom.
	Zoom       float64
	Contrast   float64 // at most 4: multiplies or divides by a factor uniform on 1 to 1 + Contrast
	Brightness float64 // at most 4: adds a number uniform on -Brightness to Brightness
	Erase      float64 // side of the square as a fraction of min(H, W), below 1; its centre is a random pixel
	Stream     uint16  // a number from Builder.Stream
}

// maxChange is the largest Zoom, Contrast and Brightness.
const maxChange = 4

// The random words of an image, and the number of words reserved for it.
const (
	wordFlip = iota
	wordRows
	wordColumns
	wordAngle
	wordTop
	wordLeft
	wordZoom
	wordValues // contrast and brightness, of 16 bits each

	augmentWords = 8
)

// Validate returns an error if an attribute is out of range for images of any size, or if the op
// would change nothing.
func (g Augment) Validate() error {
	switch {
	case g.Shift < 0:
		return errors.Errorf("shift must be at least 0 pixels, got %d", g.Shift)
	case !(g.Rotation >= 0 && g.Rotation <= 180):
		return errors.Errorf("rotation must be 0 to 180 degrees, got %v", g.Rotation)
	case !(g.Erase >= 0 && g.Erase < 1):
		return errors.Errorf("erase must be at least 0 and below 1, got %v", g.Erase)
	case g == Augment{Stream: g.Stream}:
		return errors.New("one of flip, shift, rotation, zoom, contrast, brightness and erase must be set")
	}
	for _, change := range []struct {
		name string
		most float64
	}{{"zoom", g.Zoom}, {"contrast", g.Contrast}, {"brightness", g.Brightness}} {
		if !(change.most >= 0 && change.most <= maxChange) {
			return errors.Errorf("%s must be 0 to %d, got %v", change.name, maxChange, change.most)
		}
	}
	return nil
}

// Name implements graph.Op.
func (Augment) Name() string { return "augment" }

// InputType implements graph.Mixed.
func (Augment) InputType(i int) tensor.DType { return [...]tensor.DType{1: tensor.Uint64}[i] }

// Shape implements graph.Op.
func (g Augment) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 1); err != nil {
		return nil, err
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	height, width := in[0][2], in[0][3]
	switch {
	case g.Shift >= min(height, width):
		return nil, errors.Errorf("shift must be below the side of the images, %dx%d pixels, got %d", height, width, g.Shift)
	case g.Erase > 0 && g.side(height, width) == 0:
		return nil, errors.Errorf("erase must be at least one pixel of images of %dx%d, got %v of their side", height, width, g.Erase)
	}
	return in[0], checkStream(g.Stream, in[0][0], augmentWords)
}

// side returns the side of the square in pixels.
func (g Augment) side(height, width int) int {
	return int(math.Round(g.Erase * float64(min(height, width))))
}

// quarter returns a quarter of the largest angle, in radians, the argument of sincos4.
func (g Augment) quarter() float64 { return g.Rotation * (math.Pi / 720) }

// maxAugmented is the maximum number of images of a block, as in cuda/kernels/augment.cu.
const maxAugmented = 32

// Lower implements graph.Op.
func (g Augment) Lower(l *graph.Lowering) {
	images, channels, height, width := l.Shape[0], l.Shape[1], l.Shape[2], l.Shape[3]
	run := graph.Pick(l, augment[float32](g, l.Shape), augment[float64](g, l.Shape))
	grid := tensor.Shares{Items: images, MaxItems: maxAugmented, Threads: min(height*width, 256)}
	l.Emit("augment_fwd", grid, tensor.Rows(images, channels*height*width, run), l.Out(), l.In(0), l.In(1),
		tensor.Int(images), tensor.Int(channels), tensor.Int(height), tensor.Int(width), tensor.Bool(g.Flip), tensor.Int(g.Shift),
		tensor.Float(l.DType, g.quarter()), tensor.Float(l.DType, g.Zoom), tensor.Float(l.DType, g.Contrast), tensor.Float(l.DType, g.Brightness),
		tensor.Int(g.side(height, width)), tensor.Uint(uint32(g.Stream)))
}

// transform holds the random choices for one image.
type transform[T float32 | float64] struct {
	flipped              bool
	rows, columns        int
	cosine, sine         T // divided by the enlargement
	contrast, brightness T
	top, left            int // of the square, which may begin above and before the image
}

// uniformInt maps a random word to 0 ... n-1. The numbers of words that map to two results differ
// by one at most.
func uniformInt(word uint32, n int) int { return int(uint64(word) * uint64(n) >> 32) }

// transformOf returns the transform that an image's words select; quarter is a quarter of the
// largest angle, in radians.
func transformOf[T float32 | float64](words *[augmentWords]uint32, g Augment, quarter T, height, width, side int) transform[T] {
	c := transform[T]{
		flipped:    g.Flip && words[wordFlip]>>31 != 0,
		rows:       uniformInt(words[wordRows], 2*g.Shift+1) - g.Shift,
		columns:    uniformInt(words[wordColumns], 2*g.Shift+1) - g.Shift,
		contrast:   factor(fraction[T](words[wordValues]>>16, 16), T(g.Contrast)),
		brightness: fraction[T](words[wordValues]&0xffff, 16) * T(g.Brightness),
		top:        uniformInt(words[wordTop], height) - side/2,
		left:       uniformInt(words[wordLeft], width) - side/2,
	}
	c.cosine, c.sine = sincos4(fraction[T](words[wordAngle]>>8, 24) * quarter)
	shrink := factor(fraction[T](words[wordZoom]>>8, 24), T(g.Zoom))
	c.cosine, c.sine = shrink*c.cosine, shrink*c.sine
	return c
}

// fraction maps a number of some bits, at most 24, to a number above -1 and at most 1, exactly.
func fraction[T float32 | float64](word uint32, bits int) T {
	half := T(uint32(1) << (bits - 1))
	return (T(word) + 1 - half) / half
}

// factor maps numbers from -1 to 1 to factors from 1/(1+most) to 1+most.
func factor[T float32 | float64](share, most T) T {
	if share < 0 {
		return 1 / (1 - T(share*most))
	}
	return 1 + T(share*most)
}

// sincos4 returns the cosine and the sine of 4t for |t| <= pi/4, by Taylor series up to t^16 and
// t^15 followed by the double-angle formulas, twice. The CUDA kernel has the same operations, each
// rounded, so that the bits agree.
func sincos4[T float32 | float64](t T) (cosine, sine T) {
	square := t * t
	even, odd := T(1), T(1)
	for k := T(16); k >= 2; k -= 2 {
		even = 1 - T(T(square*even)*(1/(k*(k-1))))
	}
	for k := T(14); k >= 2; k -= 2 {
		odd = 1 - T(T(square*odd)*(1/(k*(k+1))))
	}
	cosine, sine = even, t*odd
	for range 2 {
		cosine, sine = 1-T(2*T(sine*sine)), 2*T(sine*cosine)
	}
	return cosine, sine
}

// augment transforms images lo to hi of a minibatch. Each image has its own random numbers, which
// depend only on the seed, the chain, the step and the image's place in the batch.
func augment[T float32 | float64](g Augment, shape tensor.Shape) func(a *tensor.Args, lo, hi int) {
	channels, height, width := shape[1], shape[2], shape[3]
	quarter, side, pixels := T(g.quarter()), g.side(height, width), channels*height*width
	between, values := quarter != 0 || T(g.Zoom) != 0, T(g.Contrast) != 0 || T(g.Brightness) != 0 // as rounded, like the kernel
	return func(a *tensor.Args, lo, hi int) {
		y, x, header := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[uint64](a, 2)
		address := AddressOf(header, g.Stream)
		var words [augmentWords]uint32
		for i := lo; i < hi; i++ {
			random.Bits(words[:], augmentWords*i, address)
			c := transformOf(&words, g, quarter, height, width, side)
			to, from := y[i*pixels:(i+1)*pixels], x[i*pixels:(i+1)*pixels]
			if between {
				c.interpolate(to, from, height, width)
			} else {
				c.translate(to, from, height, width)
			}
			if values {
				for k, v := range to {
					to[k] = T(c.contrast*v) + c.brightness
				}
			}
			c.erase(to, height, width, side)
		}
	}
}

// translate fills an image's rows with pixels that keep their bits.
func (c transform[T]) translate(to, from []T, height, width int) {
	lo, hi := max(0, c.columns), min(width, width+c.columns) // columns that come from within
	for row := range len(to) / width {
		y := to[row*width : (row+1)*width]
		p := row % height
		if p < c.rows || p-c.rows >= height {
			clear(y)
			continue
		}
		x := from[(row-c.rows)*width:][:width]
		if !c.flipped {
			clear(y[:lo])
			copy(y[lo:hi], x[lo-c.columns:])
			clear(y[hi:])
			continue
		}
		clear(y)
		for q := lo; q < hi; q++ {
			y[width-1-q] = x[q-c.columns]
		}
	}
}

// interpolate fills an image by bilinear interpolation.
func (c transform[T]) interpolate(to, from []T, height, width int) {
	plane := height * width
	middleRow, middleColumn := T(height-1)/2, T(width-1)/2
	for p := range height {
		a := T(p-c.rows) - middleRow
		rowU, rowV := middleRow+T(c.cosine*a), middleColumn+T(c.sine*a)
		for q := range width {
			b := T(q-c.columns) - middleColumn
			at := p*width + q
			if c.flipped {
				at = p*width + width - 1 - q
			}
			u, v := rowU-T(c.sine*b), rowV+T(c.cosine*b)
			i, j := int(u), int(v)
			if u < T(i) {
				i--
			}
			if v < T(j) {
				j--
			}
			// Bilinear weights. The fast path has all four pixels within the image.
			down, right := u-T(i), v-T(j)
			up, left := 1-down, 1-right
			if i >= 0 && i < height-1 && j >= 0 && j < width-1 {
				for k := i*width + j; k < len(from); k += plane {
					x, below := from[k:k+2], from[k+width:k+width+2]
					upper := T(left*x[0]) + T(right*x[1])
					lower := T(left*below[0]) + T(right*below[1])
					to[at] = T(up*upper) + T(down*lower)
					at += plane
				}
				continue
			}
			for first := 0; first < len(from); first += plane {
				x := from[first : first+plane]
				upper := T(left*pixelOrZero(x, i, j, height, width)) + T(right*pixelOrZero(x, i, j+1, height, width))
				lower := T(left*pixelOrZero(x, i+1, j, height, width)) + T(right*pixelOrZero(x, i+1, j+1, height, width))
				to[at] = T(up*upper) + T(down*lower)
				at += plane
			}
		}
	}
}

// pixelOrZero returns a pixel of a plane, or 0 beyond its edges.
func pixelOrZero[T float32 | float64](x []T, i, j, height, width int) T {
	if i < 0 || i >= height || j < 0 || j >= width {
		return 0
	}
	return x[i*width+j]
}

// erase sets a square of each plane to 0.
func (c transform[T]) erase(to []T, height, width, side int) {
	top, bottom := max(0, c.top), min(height, c.top+side)
	left, right := max(0, c.left), min(width, c.left+side)
	for first := 0; first < len(to); first += height * width {
		for p := top; p < bottom; p++ {
			clear(to[first+p*width+left : first+p*width+right])
		}
	}
}
