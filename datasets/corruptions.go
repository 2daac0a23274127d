package datasets

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// severities is the number of severities of a corruption.
const severities = 5

// corruption is a row of the table of corruptions: a function that corrupts an image [C H W] in
// place, and its parameter for each severity.
type corruption struct {
	name    string
	numbers [severities]float64
	apply   func(p *pixelBuffer, number float64) error
}

// pixelBuffer is an image that is being corrupted.
type pixelBuffer struct {
	channels, height, width int
	values                  []float64 // [C H W], from 0 to 1
	random                  *rand.Rand
}

// corruptions are CIFAR-10-C's, except the ones that need images of frost or a random
// landscape.
var corruptions = []corruption{
	{"gaussian-noise", [severities]float64{0.04, 0.06, 0.08, 0.09, 0.1}, func(p *pixelBuffer, std float64) error {
		return p.each(func(v float64) float64 { return v + float64(std*p.random.NormFloat64()) })
	}},
	{"speckle-noise", [severities]float64{0.06, 0.1, 0.12, 0.16, 0.2}, func(p *pixelBuffer, std float64) error {
		return p.each(func(v float64) float64 { return v + float64(v*float64(std*p.random.NormFloat64())) })
	}},
	{"impulse-noise", [severities]float64{0.01, 0.02, 0.03, 0.05, 0.07}, func(p *pixelBuffer, fraction float64) error {
		return p.each(func(v float64) float64 {
			if p.random.Float64() < fraction {
				return float64(p.random.IntN(2))
			}
			return v
		})
	}},
	{"gaussian-blur", [severities]float64{0.4, 0.6, 0.7, 0.8, 1}, (*pixelBuffer).blur},
	{"brightness", [severities]float64{0.05, 0.1, 0.15, 0.2, 0.3}, (*pixelBuffer).brighten},
	{"contrast", [severities]float64{0.75, 0.5, 0.4, 0.3, 0.15}, (*pixelBuffer).flatten},
	{"pixelate", [severities]float64{0.95, 0.9, 0.85, 0.75, 0.65}, (*pixelBuffer).pixelate},
	{"jpeg", [severities]float64{80, 65, 58, 50, 40}, (*pixelBuffer).compress},
}

// Corruptions returns the names of the corruptions of Corrupted.
func Corruptions() []string {
	var names []string
	for _, s := range corruptions {
		names = append(names, s.name)
	}
	return names
}

// Corrupted returns the data set with corrupted images, at a severity from 1 to 5, as in CIFAR-10-C
// (Hendrycks and Dietterich 2019, Benchmarking neural network robustness to common corruptions and
// perturbations). It uses the formulas and parameters of CIFAR-10-C for images of any size. Its
// random numbers differ from theirs; they depend only on the seed and the image's number.
// Brightness and jpeg change images of other than three channels channel by channel.
func (d *Dataset) Corrupted(name string, severity int, seed uint64) (*Dataset, error) {
	at := slices.IndexFunc(corruptions, func(s corruption) bool { return s.name == name })
	if at < 0 {
		return nil, errors.Errorf("datasets: no corruption %q; %s", name, nearest.Among(name, Corruptions()))
	}
	if severity < 1 || severity > severities {
		return nil, errors.Errorf("datasets: %s: severity must be 1 to %[3]d, got %[2]d", name, severity, severities)
	}
	if err := checkCopy(d, d.Len()); err != nil {
		return nil, err
	}
	corrupted := *d
	corrupted.Images = make([]byte, len(d.Images))
	p := &pixelBuffer{channels: d.Channels, height: d.Height, width: d.Width, values: make([]float64, d.ImageSize())}
	for i := range d.Len() {
		for j, v := range d.Image(i) {
			p.values[j] = float64(v) / 255
		}
		p.random = rand.New(rand.NewPCG(seed, uint64(i)))
		if err := corruptions[at].apply(p, corruptions[at].numbers[severity-1]); err != nil {
			return nil, errors.WithMessagef(err, "datasets: %s: image %d of %s", name, i, d.Name)
		}
		to := corrupted.Image(i)
		for j, v := range p.values {
			to[j] = byte(255*max(0, min(1, v)) + 1e-9) // rounded down, as in CIFAR-10-C
		}
	}
	return &corrupted, nil
}

// each applies f to every value.
func (p *pixelBuffer) each(f func(v float64) float64) error {
	for i, v := range p.values {
		p.values[i] = f(v)
	}
	return nil
}

// plane returns the values of a channel.
func (p *pixelBuffer) plane(channel int) []float64 {
	size := p.height * p.width
	return p.values[channel*size : (channel+1)*size]
}

// blur convolves with a Gaussian of standard deviation std, in pixels, truncated at four std.
// Pixels beyond the border have the value of the nearest pixel.
func (p *pixelBuffer) blur(std float64) error {
	radius := int(4*std + 0.5)
	weights, sum := make([]float64, 2*radius+1), 0.0
	for i := range weights {
		z := float64(i-radius) / std
		weights[i] = math.Exp(float64(-0.5*z) * z)
		sum += weights[i]
	}
	line := func(values []float64, first, stride, n int) {
		old := make([]float64, n)
		for i := range old {
			old[i] = values[first+i*stride]
		}
		for i := range old {
			total := 0.0
			for j, w := range weights {
				total += float64(w * old[max(0, min(n-1, i+j-radius))])
			}
			values[first+i*stride] = total / sum
		}
	}
	for channel := range p.channels {
		plane := p.plane(channel)
		for y := range p.height {
			line(plane, y*p.width, 1, p.width)
		}
		for x := range p.width {
			line(plane, x, p.width, p.height)
		}
	}
	return nil
}

// brighten increases the value (HSV) of colours, the largest of the channels, and keeps hue and
// saturation.
func (p *pixelBuffer) brighten(by float64) error {
	if p.channels != 3 {
		return p.each(func(v float64) float64 { return v + by })
	}
	red, green, blue := p.plane(0), p.plane(1), p.plane(2)
	for i := range red {
		value := max(red[i], green[i], blue[i])
		to := min(1, value+by)
		if value == 0 {
			red[i], green[i], blue[i] = to, to, to
			continue
		}
		red[i], green[i], blue[i] = red[i]*to/value, green[i]*to/value, blue[i]*to/value
	}
	return nil
}

// flatten reduces the contrast: it scales each channel's difference from its mean by a factor.
func (p *pixelBuffer) flatten(factor float64) error {
	for channel := range p.channels {
		plane, mean := p.plane(channel), 0.0
		for _, v := range plane {
			mean += v / float64(len(plane))
		}
		for i, v := range plane {
			plane[i] = float64((v-mean)*factor) + mean
		}
	}
	return nil
}

// pixelate scales the image down by a factor and up again, with box filters.
func (p *pixelBuffer) pixelate(factor float64) error {
	height, width := max(1, int(float64(p.height)*factor)), max(1, int(float64(p.width)*factor))
	for channel := range p.channels {
		plane := p.plane(channel)
		small := boxed(plane, p.height, p.width, height, width)
		copy(plane, boxed(small, height, width, p.height, p.width))
	}
	return nil
}

// boxed scales a plane: each pixel is the mean of the pixels whose centres it covers, or else the
// nearest, rounded to a byte.
func boxed(from []float64, height, width, toHeight, toWidth int) []float64 {
	to := make([]float64, toHeight*toWidth)
	for y := range toHeight {
		top, bottom := box(y, toHeight, height)
		for x := range toWidth {
			left, right := box(x, toWidth, width)
			sum := 0.0
			for i := top; i < bottom; i++ {
				for j := left; j < right; j++ {
					sum += from[i*width+j]
				}
			}
			to[y*toWidth+x] = math.Round(255*sum/float64((bottom-top)*(right-left))) / 255
		}
	}
	return to
}

// box returns the range [from, to) of n pixels that pixel i of m covers.
func box(i, m, n int) (from, to int) {
	scale := float64(n) / float64(m)
	centre, half := float64((float64(i)+0.5)*scale), max(1, scale)/2
	return max(0, int(centre-half+0.5)), min(n, int(centre+half+0.5))
}

// compress encodes the image as a JPEG of the given quality and decodes it. Images of other than
// three channels are compressed channel by channel, in grey.
func (p *pixelBuffer) compress(quality float64) error {
	if p.channels == 3 {
		return p.compressChannels(quality, 0, 1, 2)
	}
	for channel := range p.channels {
		if err := p.compressChannels(quality, channel); err != nil {
			return err
		}
	}
	return nil
}

// compressChannels compresses one channel, in grey, or three, as red, green and blue.
func (p *pixelBuffer) compressChannels(quality float64, channels ...int) error {
	bounds := image.Rect(0, 0, p.width, p.height)
	at := func(i, x, y int) byte { return byte(math.Round(255 * p.plane(channels[i])[y*p.width+x])) }
	var before image.Image
	if len(channels) == 1 {
		grey := image.NewGray(bounds)
		for y := range p.height {
			for x := range p.width {
				grey.SetGray(x, y, color.Gray{Y: at(0, x, y)})
			}
		}
		before = grey
	} else {
		coloured := image.NewRGBA(bounds)
		for y := range p.height {
			for x := range p.width {
				coloured.SetRGBA(x, y, color.RGBA{R: at(0, x, y), G: at(1, x, y), B: at(2, x, y), A: 255})
			}
		}
		before = coloured
	}
	var file bytes.Buffer
	if err := jpeg.Encode(&file, before, &jpeg.Options{Quality: int(quality)}); err != nil {
		return errors.WithStack(err)
	}
	after, err := jpeg.Decode(&file)
	if err != nil {
		return errors.WithStack(err)
	}
	for y := range p.height {
		for x := range p.width {
			c := color.RGBAModel.Convert(after.At(x, y)).(color.RGBA)
			for i, v := range []byte{c.R, c.G, c.B}[:len(channels)] {
				p.plane(channels[i])[y*p.width+x] = float64(v) / 255
			}
		}
	}
	return nil
}
