package datasets

import "math/rand/v2"

// Geometry of a cell of glyphs/letters.png; see glyphs/generate. All computations with letters use
// integers, so that the images are the same on every machine. Lengths are in grains.
const (
	cellSide      = 64  // pixels
	distanceZero  = 128 // the byte of a point on the outline
	distanceGrain = 16  // grains of distance per step of the byte
	grain         = 256 // grains per pixel of a cell

	// outputPixel is the size of an image pixel in the cell if the letter fills the image: 56 cell
	// pixels of ink are 28 image pixels.
	outputPixel = 2 * grain
)

// letter is a cell: a square of bytes, each the signed distance from the pixel's centre to the
// outline of the letter, positive inside.
type letter struct {
	pixels []byte
	stride int
}

// distance returns the signed distance at (x, y), in grains, by bilinear interpolation between the
// pixels' centres; outside the cell it returns the distance at the nearest point of the edge.
func (l letter) distance(x, y int) int {
	const last = (cellSide-1)*grain - 1
	x, y = min(max(x-grain/2, 0), last), min(max(y-grain/2, 0), last)
	i := y/grain*l.stride + x/grain
	fx, fy := x%grain, y%grain
	top := int(l.pixels[i])*(grain-fx) + int(l.pixels[i+1])*fx
	i += l.stride
	bottom := int(l.pixels[i])*(grain-fx) + int(l.pixels[i+1])*fx
	return (top*(grain-fy)+bottom*fy)/(grain*grain/distanceGrain) - distanceZero*distanceGrain
}

// variation is the difference of an image from its letter.
type variation struct {
	face    int // index of the design's face
	bolder  int // grains by which the outline moves outwards
	slant   int // x moves by slant/256 of y
	hollow  int // width of the outline in grains; 0 for a filled letter
	margins [4]int
}

// newVariation draws the variation of image i. The distributions make the mean and standard
// deviation of the images similar to notMNIST's.
func newVariation(split Split, i, faces int) variation {
	random := rand.NewPCG(uint64(split)+1, uint64(i))
	between := func(low, high int) int {
		return low + int(random.Uint64()>>32*uint64(high-low+1)>>32)
	}
	v := variation{face: between(0, faces-1)}
	v.bolder = between(-outputPixel/8, outputPixel)
	if between(1, 3) == 1 {
		v.slant = between(-grain/16, grain/4)
	}
	if between(1, 24) == 1 {
		v.hollow = between(outputPixel, 2*outputPixel)
	}
	for side := range v.margins {
		v.margins[side] = between(0, outputPixel/2)
	}
	return v
}

// distance returns the letter's distance with the outline moved and hollowed.
func (v variation) distance(l letter, x, y int) int {
	d := l.distance(x, y) + v.bolder
	if v.hollow > 0 {
		d = min(d, v.hollow-d)
	}
	return d
}

// slanted returns the x of a point after slanting.
func (v variation) slanted(x, y int) int { return x - v.slant*(y-cellSide*grain/2)/256 }

// inkBox returns the bounding box of the slanted letter's ink. From an inner point, the ink extends
// at least by the point's distance in every direction.
func (v variation) inkBox(l letter) (left, top, right, bottom int) {
	left, top = cellSide*grain, cellSide*grain
	for row := range cellSide {
		y := row*grain + grain/2
		for column, pixel := range l.pixels[row*l.stride : row*l.stride+cellSide] {
			d := (int(pixel)-distanceZero)*distanceGrain + v.bolder
			if d <= 0 {
				continue
			}
			x := v.slanted(column*grain+grain/2, y)
			left, right = min(left, x-d), max(right, x+d)
			top, bottom = min(top, y-d), max(bottom, y+d)
		}
	}
	return left, top, right, bottom
}

// draw draws the letter into an image, initially 0, stretched so that its ink fills the image
// except for the margins. A pixel is the mean of four points.
func (v variation) draw(l letter, pixels []byte) {
	left, top, right, bottom := v.inkBox(l)
	const whole = knownSide * outputPixel
	// place maps a position in the image to the slanted cell.
	place := func(position, low, high, before, after int) int {
		return low + (position-before)*(high-low)/(whole-before-after)
	}
	// distanceAt returns the distance at a point of the image.
	distanceAt := func(x, y int) int {
		y = place(y, top, bottom, v.margins[0], v.margins[1])
		x = place(x, left, right, v.margins[2], v.margins[3])
		return v.distance(l, x+v.slant*(y-cellSide*grain/2)/256, y)
	}
	for row := range knownSide {
		for column := range knownSide {
			pixel := &pixels[row*knownSide+column]
			x, y := column*outputPixel, row*outputPixel
			middle := distanceAt(x+outputPixel/2, y+outputPixel/2)
			if middle >= outputPixel {
				*pixel = 255
			}
			if middle >= outputPixel || middle <= -outputPixel {
				continue // all four points are on this side of the outline
			}
			sum := 0
			for point := range 4 {
				// A point represents a square of half an output pixel.
				d := distanceAt(x+outputPixel/4+point%2*outputPixel/2, y+outputPixel/4+point/2*outputPixel/2)
				sum += min(max(d+outputPixel/4, 0), outputPixel/2)
			}
			*pixel = byte((sum*255 + outputPixel) / (2 * outputPixel))
		}
	}
}
