package strange

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"golang.org/x/image/font/sfnt"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Kind is one kind of strange images.
type Kind struct {
	Name   string // plural, as in "solid colours"
	Images []byte // [n C H W]
}

// kinds are the kinds with their numbers of images, 600 in total.
var kinds = []struct {
	name   string
	images int
	draw   func(c *canvas) error
}{
	{"solid colours", 75, (*canvas).solid},
	{"noise", 75, (*canvas).noise},
	{"ramps", 75, (*canvas).ramp},
	{"stripes and chessboards", 75, (*canvas).board},
	{"letters", 75, (*canvas).letter},
	{"own images inverted", ofOwn, (*canvas).inverted},
	{"own images with shuffled pixels", ofOwn, (*canvas).shuffledPixels},
	{"own images with shuffled patches", ofOwn, (*canvas).shuffledPatches},
}

// ofOwn is the number of own images that are changed in each of three ways.
const ofOwn = 75

// Count returns the number of images that Images returns.
func Count() int {
	n := 0
	for _, k := range kinds {
		n += k.images
	}
	return n
}

// Images returns 600 strange images of the size and channels of own. Some are made from its images.
func Images(own *datasets.Dataset) ([]Kind, error) {
	fonts, err := readFonts()
	if err != nil {
		return nil, err
	}
	var all []Kind
	for number, k := range kinds {
		images := make([]byte, 0, k.images*own.ImageSize())
		for i := range k.images {
			c := &canvas{
				own: own, fonts: fonts, number: i, pixels: make([]byte, own.ImageSize()),
				channels: own.Channels, height: own.Height, width: own.Width,
				address: random.Address{Seed: seed, Chain: uint32(number), Step: uint64(i)},
			}
			if err := k.draw(c); err != nil {
				return nil, errors.Wrapf(err, "strange: %s", k.name)
			}
			images = append(images, c.pixels...)
		}
		all = append(all, Kind{k.name, images})
	}
	return all, nil
}

const seed = 600

// canvas is an image that is being drawn, with a stream of random numbers.
type canvas struct {
	own                     *datasets.Dataset
	fonts                   []*sfnt.Font
	number                  int
	pixels                  []byte // [C H W]
	channels, height, width int
	address                 random.Address
	used                    int // random numbers
}

// fraction returns the next random number in [0, 1).
func (c *canvas) fraction() float64 {
	var v [1]float64
	random.Fractions(v[:], c.used, c.address)
	c.used++
	return v[0]
}

// colour returns a random value for each channel.
func (c *canvas) colour() []float64 {
	v := make([]float64, c.channels)
	for i := range v {
		v[i] = 255 * c.fraction()
	}
	return v
}

// fill sets each pixel to a mixture of two colours.
func (c *canvas) fill(from, to []float64, mixture func(y, x int) float64) {
	for channel := range c.channels {
		for y := range c.height {
			for x := range c.width {
				t := mixture(y, x)
				v := from[channel]*(1-t) + to[channel]*t
				c.pixels[(channel*c.height+y)*c.width+x] = byte(math.Round(v))
			}
		}
	}
}

// extremes are black, white, and the colours with channels of 0 and 255.
func (c *canvas) extremes(number int) []float64 {
	v := make([]float64, c.channels)
	for i := range v {
		v[i] = 255 * float64(number>>min(i, 2)&1)
	}
	return v
}

func (c *canvas) solid() error {
	colour := c.colour()
	if n := 1 << min(c.channels, 3); c.number < n {
		colour = c.extremes(c.number)
	}
	c.fill(colour, colour, func(int, int) float64 { return 0 })
	return nil
}

func (c *canvas) noise() error {
	words := make([]uint32, len(c.pixels))
	random.Bits(words, 0, c.address)
	binary := c.number%3 == 2 // black and white
	for i, w := range words {
		c.pixels[i] = byte(w >> 24)
		if binary {
			c.pixels[i] = byte(int32(w) >> 31)
		}
	}
	return nil
}

func (c *canvas) ramp() error {
	angle := 2 * math.Pi * c.fraction()
	from, to := c.colour(), c.colour()
	if c.number%2 == 0 {
		from, to = c.extremes(0), c.extremes(7)
	}
	dx, dy := math.Cos(angle), math.Sin(angle)
	c.fill(from, to, func(y, x int) float64 {
		at := dx*(float64(x)/float64(c.width)-0.5) + dy*(float64(y)/float64(c.height)-0.5)
		return min(max(at/math.Sqrt2+0.5, 0), 1)
	})
	return nil
}

func (c *canvas) board() error {
	from, to := c.colour(), c.colour()
	if c.number%2 == 0 {
		from, to = c.extremes(0), c.extremes(7)
	}
	side := 1 + int(c.fraction()*float64(min(c.height, c.width)/4))
	kind := c.number / 2 % 3
	c.fill(from, to, func(y, x int) float64 {
		y, x = y/side, x/side
		return float64([...]int{x + y, x, y}[kind] % 2)
	})
	return nil
}

// copyOwn copies one of the own images, evenly spaced.
func (c *canvas) copyOwn() {
	n := c.own.Len()
	at := c.number * n / ofOwn
	if n < ofOwn {
		at = c.number % n
	}
	copy(c.pixels, c.own.Image(at))
}

func (c *canvas) inverted() error {
	c.copyOwn()
	for i := range c.pixels {
		c.pixels[i] = 255 - c.pixels[i]
	}
	return nil
}

// permutation returns a random order of n.
func (c *canvas) permutation(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = int(random.Permute(uint64(i), uint64(n), c.address.Seed, c.address.Chain, c.address.Step))
	}
	return order
}

func (c *canvas) shuffledPixels() error {
	c.copyOwn()
	size := c.height * c.width
	order := c.permutation(size)
	for channel := range c.channels {
		plane := c.pixels[channel*size : (channel+1)*size]
		before := slices.Clone(plane)
		for i, from := range order {
			plane[i] = before[from]
		}
	}
	return nil
}

// shuffledPatches cuts the image into 4x4 patches, and permutes them. Rows and columns beyond a
// multiple of 4 stay.
func (c *canvas) shuffledPatches() error {
	c.copyOwn()
	const across = 4
	h, w := c.height/across, c.width/across
	before := slices.Clone(c.pixels)
	for to, from := range c.permutation(across * across) {
		for channel := range c.channels {
			for y := range h {
				row := func(patch int) int {
					return (channel*c.height+patch/across*h+y)*c.width + patch%across*w
				}
				copy(c.pixels[row(to):][:w], before[row(from):][:w])
			}
		}
	}
	return nil
}
