package transfer

import (
	"math"
	"runtime"
	"sync"

	"github.com/pollen-ml/pollen/tensor/random"
)

// Most changed images are warped by a random affine map: a rotation by up to maxTurn, a scale of
// up to e^maxZoom along each axis, and a shift by up to maxShift of the side. These are small:
// the more a small network must learn about other images, the less closely it follows its teacher
// on images like those trained on. A fraction blended of all images is then blended with another
// image.
//
// For the fractions pasted, waves and figures, the network learns its teacher's predictions for
// images that belong to no class. A pasted image is made of two images, warped strongly times as
// much: a rectangle of one is pasted into the other. Waves and figures are drawn.
const (
	maxTurn  = math.Pi / 36
	maxZoom  = 0.05
	maxShift = 0.025
	strongly = 4

	blended = 0.25
	pasted  = 0.15
	waves   = 0.1
	figures = 0.2
)

// Pool has the images to start from, numbered from 0 to Len-1.
type Pool struct {
	Channels, Height, Width int
	Len                     int
	Image                   func(i int) []byte // pixels [C H W]
}

// Copy returns n images, one after the other. Copies 0, 1, 2, ... continue one endless sequence of
// shuffled passes over the pool. In the first pass every image is unchanged. A copy depends only on
// the pool, n, its number and the seed.
func (p Pool) Copy(n, number int, seed uint64) []byte {
	size := p.Channels * p.Height * p.Width
	pixels := make([]byte, n*size)
	parts := runtime.GOMAXPROCS(0)
	var drawing sync.WaitGroup
	for part := range parts {
		drawing.Go(func() {
			c := changer{Pool: p, other: make([]byte, size)}
			for i := part * n / parts; i < (part+1)*n/parts; i++ {
				position := number*n + i
				c.address, c.used = random.Address{Seed: seed, Chain: stream, Step: uint64(position)}, 0
				c.image(position, pixels[i*size:(i+1)*size])
			}
		})
	}
	drawing.Wait()
	return pixels
}

// stream is the number of a chain that no run has, so that its random numbers are used here only.
const stream = math.MaxUint32

// changer changes images at random.
type changer struct {
	Pool
	address random.Address
	used    int    // random numbers
	other   []byte // the image that is blended or pasted
}

// image writes the image at a position of the sequence.
func (c *changer) image(position int, to []byte) {
	n := uint64(c.Len)
	pass := uint64(position) / n
	image := c.Image(int(random.Permute(uint64(position)%n, n, c.address.Seed, stream, pass)))
	if pass == 0 {
		copy(to, image)
		return
	}
	another := func() []byte { return c.Image(int(c.fraction() * float64(n))) }
	switch kind := c.fraction(); {
	case kind < waves:
		c.drawWaves(to)
	case kind < waves+figures:
		c.drawFigures(to)
	case kind < waves+figures+pasted:
		c.warp(image, to, strongly)
		c.warp(another(), c.other, strongly)
		c.paste(to)
	case kind < waves+figures+pasted+blended:
		c.warp(image, to, 1)
		c.warp(another(), c.other, 1)
		c.blend(to)
	default:
		c.warp(image, to, 1)
	}
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

// warp writes an image under a random affine map, interpolated linearly. factor multiplies the
// limits of the map. Beyond its edges, the image continues with their pixels.
func (c *changer) warp(from, to []byte, factor float64) {
	sin, cos := math.Sincos(c.between(factor * maxTurn))
	zoomY, zoomX := math.Exp(c.between(factor*maxZoom)), math.Exp(c.between(factor*maxZoom))
	h, w := float64(c.Height), float64(c.Width)
	shiftY, shiftX := c.between(factor*maxShift*h), c.between(factor*maxShift*w)
	middleY, middleX := (h-1)/2, (w-1)/2
	for y := range c.Height {
		for x := range c.Width {
			dy, dx := (float64(y)-middleY-shiftY)*zoomY, (float64(x)-middleX-shiftX)*zoomX
			fromY := min(max(middleY+cos*dy-sin*dx, 0), h-1)
			fromX := min(max(middleX+sin*dy+cos*dx, 0), w-1)
			top, left := int(fromY), int(fromX)
			bottom, right := min(top+1, c.Height-1), min(left+1, c.Width-1)
			fy, fx := fromY-float64(top), fromX-float64(left)
			for channel := range c.Channels {
				plane := from[channel*c.Height*c.Width:]
				above := float64(plane[top*c.Width+left])*(1-fx) + float64(plane[top*c.Width+right])*fx
				below := float64(plane[bottom*c.Width+left])*(1-fx) + float64(plane[bottom*c.Width+right])*fx
				to[(channel*c.Height+y)*c.Width+x] = byte(above*(1-fy) + below*fy + 0.5)
			}
		}
	}
}

// blend mixes the other image into an image, in a random ratio of at most a half.
func (c *changer) blend(image []byte) {
	t := c.fraction() / 2
	for i, v := range c.other {
		image[i] = byte(float64(image[i])*(1-t) + float64(v)*t + 0.5)
	}
}

// paste replaces a random rectangle, of a tenth to three fifths of the area, by the other image's.
func (c *changer) paste(image []byte) {
	area := 0.1 + 0.5*c.fraction()
	ratio := math.Exp(c.between(0.7))
	height := min(c.Height, max(1, int(math.Round(float64(c.Height)*math.Sqrt(area*ratio)))))
	width := min(c.Width, max(1, int(math.Round(float64(c.Width)*math.Sqrt(area/ratio)))))
	top := int(c.fraction() * float64(c.Height-height+1))
	left := int(c.fraction() * float64(c.Width-width+1))
	for channel := range c.Channels {
		for y := top; y < top+height; y++ {
			row := (channel*c.Height+y)*c.Width + left
			copy(image[row:row+width], c.other[row:row+width])
		}
	}
}
