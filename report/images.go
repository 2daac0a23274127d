package report

import (
	"image"
	"image/color"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/image/draw"
)

// Images are the images of a data set, with the names of their classes.
type Images struct {
	// Pixels are [N C H W], one byte per value, or empty if only the names are known.
	Pixels []byte
	// Channels is 1 for grey, 3 for red, green and blue, or 4 with opacity, which is not drawn.
	// Images with other numbers of channels are not shown.
	Channels, Height, Width int
	// Ink is true if grey values are ink, as in MNIST: 0 is then drawn white.
	Ink bool
	// ClassNames has a name for each class; for In these are the network's classes. Classes without
	// a name are shown by number.
	ClassNames []string
	// Names are the names of the images, shown if their classes are unknown. Images without names
	// are numbered.
	Names []string
}

// ShortNames returns the shortest suffixes of the paths, of whole path elements, that are distinct.
func ShortNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	for longer := true; longer; {
		longer = false
		often := map[string]int{}
		for _, name := range names {
			often[name]++
		}
		for i, path := range paths {
			if often[names[i]] > 1 && len(names[i]) < len(path) {
				longer = true
				dir := path[:len(path)-len(names[i])-1]
				names[i] = path[strings.LastIndexByte(dir, filepath.Separator)+1:]
			}
		}
	}
	return names
}

// Len returns N.
func (p *Images) Len() int { return len(p.Pixels) / max(p.Channels*p.Height*p.Width, 1) }

// drawn reports whether there are images that can be drawn.
func (p *Images) drawn() bool {
	return p != nil && p.Len() > 0 && (p.Channels == 1 || p.Channels == 3 || p.Channels == 4)
}

func (p *Images) check(what string) error {
	if len(p.Pixels) == 0 {
		return nil
	}
	size := p.Channels * p.Height * p.Width
	if p.Channels < 1 || p.Height < 1 || p.Width < 1 || len(p.Pixels)%size != 0 {
		return errors.Errorf("report: %s: got %d pixels of %d channels, %d x %d, want channels of whole images",
			what, len(p.Pixels), p.Channels, p.Height, p.Width)
	}
	return nil
}

func (p *Images) className(class int) string {
	if p == nil || class < 0 || class >= len(p.ClassNames) {
		return strconv.Itoa(class)
	}
	return p.ClassNames[class]
}

// imageSize is the approximate number of pixels of the longer side of an image in a tile of 3 cm.
const imageSize = 240

// render returns image i for drawing. Pixels of a small image become squares, so large that a
// renderer's smoothing is invisible; a large image is averaged.
func (p *Images) render(i int) image.Image {
	plane := p.Height * p.Width
	pixels := p.Pixels[i*p.Channels*plane : (i+1)*p.Channels*plane]
	small := image.NewRGBA(image.Rect(0, 0, p.Width, p.Height))
	for at := range plane {
		c := color.RGBA{R: pixels[at], G: pixels[at], B: pixels[at], A: 0xff}
		switch {
		case p.Channels >= 3:
			c.G, c.B = pixels[plane+at], pixels[2*plane+at]
		case p.Ink:
			c.R, c.G, c.B = 255-c.R, 255-c.G, 255-c.B
		}
		small.SetRGBA(at%p.Width, at/p.Width, c)
	}
	longer := max(p.Height, p.Width)
	if scale := imageSize / longer; scale > 1 {
		large := image.NewRGBA(image.Rect(0, 0, scale*p.Width, scale*p.Height))
		draw.NearestNeighbor.Scale(large, large.Bounds(), small, small.Bounds(), draw.Src, nil)
		return large
	}
	if longer > 2*imageSize {
		reduced := image.NewRGBA(image.Rect(0, 0,
			max(1, p.Width*imageSize/longer), max(1, p.Height*imageSize/longer)))
		draw.BiLinear.Scale(reduced, reduced.Bounds(), small, small.Bounds(), draw.Src, nil)
		return reduced
	}
	return small
}
