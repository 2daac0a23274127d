package pollen

import (
	"math"
	"runtime"
	"sync"

	"github.com/pollen-ml/pollen/tensor/random"
)

// The changes of images in a distillation. An image is warped by an affine map with a rotation by
// up to maxTurn, a change of size by up to a factor e^maxZoom along each axis, and a shift by up to
// maxShift of the side. A quarter of the images are then blended with another one, and into a
// quarter a rectangle of another one is pasted.
const (
	maxTurn  = math.Pi / 9
	maxZoom  = 0.2
	maxShift = 0.1

	blended = 0.25
	pasted  = 0.25
)

// transferImages returns a copy of the images of a distillation, as many as it is trained on. The
// images of all copies follow each other in an endless sequence of shuffled passes over the
// training images and the unlabelled ones, of which the first pass has all of them unchanged. A
// copy depends only on the images, the seed and its number.
func (g *teaching) transferImages(number int) []byte {
	n, size := g.data.Len(), g.data.ImageSize()
	pixels := make([]byte, n*size)
	parts := runtime.GOMAXPROCS(0)
	var drawing sync.WaitGroup
	for part := range parts {
		drawing.Go(func() {
			c := changer{channels: g.data.Channels, height: g.data.Height, width: g.data.Width, other: make([]byte, size)}
			for i := part * n / parts; i < (part+1)*n/parts; i++ {
				position := number*n + i
				c.address, c.used = random.Address{Seed: g.spec.Seed, Chain: transferStream, Step: uint64(position)}, 0
				g.transferImage(&c, position, pixels[i*size:(i+1)*size])
			}
		})
	}
	drawing.Wait()
	return pixels
}

// transferStream is the number of the chain whose random numbers change images: no run has as many.
const transferStream = math.MaxUint32

// transferImage writes the image at a position of the sequence.
func (g *teaching) transferImage(c *changer, position int, to []byte) {
	pool := uint64(g.data.Len())
	if g.unlabelled != nil {
		pool += uint64(g.unlabelled.Len())
	}
	pass := uint64(position) / pool
	image := g.poolImage(random.Permute(uint64(position)%pool, pool, g.spec.Seed, transferStream, pass))
	if pass == 0 {
		copy(to, image)
		return
	}
	c.warp(image, to)
	kind := c.fraction()
	if kind >= blended+pasted {
		return
	}
	c.warp(g.poolImage(uint64(c.fraction()*float64(pool))), c.other)
	if kind < blended {
		c.blend(to)
	} else {
		c.paste(to)
	}
}

// poolImage returns an image of those trained on, which are followed by the unlabelled ones.
func (g *teaching) poolImage(i uint64) []byte {
	if n := uint64(g.data.Len()); i >= n {
		return g.unlabelled.Image(int(i - n))
	}
	return g.data.Image(int(i))
}

// changer changes images at random.
type changer struct {
	channels, height, width int
	address                 random.Address
	used                    int    // random numbers
	other                   []byte // the image that is blended or pasted
}

// fraction returns the next random number in [0, 1).
func (c *changer) fraction() float64 {
	var v [1]float64
	random.Fractions(v[:], c.used, c.address)
	c.used++
	return v[0]
}

// between returns a random number from -most to most.
func (c *changer) between(most float64) float64 { return most * (2*c.fraction() - 1) }

// warp writes an image under a random affine map, interpolated linearly. Beyond its edges, the
// image continues with their pixels.
func (c *changer) warp(from, to []byte) {
	sin, cos := math.Sincos(c.between(maxTurn))
	zoomY, zoomX := math.Exp(c.between(maxZoom)), math.Exp(c.between(maxZoom))
	h, w := float64(c.height), float64(c.width)
	shiftY, shiftX := c.between(maxShift*h), c.between(maxShift*w)
	middleY, middleX := (h-1)/2, (w-1)/2
	for y := range c.height {
		for x := range c.width {
			dy, dx := (float64(y)-middleY-shiftY)*zoomY, (float64(x)-middleX-shiftX)*zoomX
			fromY := min(max(middleY+cos*dy-sin*dx, 0), h-1)
			fromX := min(max(middleX+sin*dy+cos*dx, 0), w-1)
			top, left := int(fromY), int(fromX)
			bottom, right := min(top+1, c.height-1), min(left+1, c.width-1)
			fy, fx := fromY-float64(top), fromX-float64(left)
			for channel := range c.channels {
				plane := from[channel*c.height*c.width:]
				above := float64(plane[top*c.width+left])*(1-fx) + float64(plane[top*c.width+right])*fx
				below := float64(plane[bottom*c.width+left])*(1-fx) + float64(plane[bottom*c.width+right])*fx
				to[(channel*c.height+y)*c.width+x] = byte(above*(1-fy) + below*fy + 0.5)
			}
		}
	}
}

// blend mixes the other image into an image, in a random ratio.
func (c *changer) blend(image []byte) {
	t := c.fraction()
	for i, v := range c.other {
		image[i] = byte(float64(image[i])*(1-t) + float64(v)*t + 0.5)
	}
}

// paste replaces a random rectangle, of a tenth to three fifths of the area, by that of the other
// image.
func (c *changer) paste(image []byte) {
	area := 0.1 + 0.5*c.fraction()
	ratio := math.Exp(c.between(0.7))
	height := min(c.height, max(1, int(math.Round(float64(c.height)*math.Sqrt(area*ratio)))))
	width := min(c.width, max(1, int(math.Round(float64(c.width)*math.Sqrt(area/ratio)))))
	top := int(c.fraction() * float64(c.height-height+1))
	left := int(c.fraction() * float64(c.width-width+1))
	for channel := range c.channels {
		for y := top; y < top+height; y++ {
			row := (channel*c.height+y)*c.width + left
			copy(image[row:row+width], c.other[row:row+width])
		}
	}
}
