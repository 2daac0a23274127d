package datasets

import "math"

// Images are resized by a separable Catmull-Rom filter whose support grows with the scale when an
// image shrinks, as in golang.org/x/image/draw. The weights are integers, so that the bytes are the
// same on every machine.
const (
	weightBits = 14 // fractional bits of a weight
	middleBits = 6  // fractional bits of a value between the two passes
)

// taps are the weights of an output value of a row or column, for the input values from first. They
// sum to 1<<weightBits.
type taps struct {
	first   int
	weights []int32
}

// catmullRom is the cubic of E. Catmull and R. Rom (1974). The conversions to float64 prevent fused
// multiply-add, which would differ between machines.
func catmullRom(t float64) float64 {
	t = math.Abs(t)
	switch {
	case t < 1:
		return float64(float64(float64(1.5*t)-2.5)*t*t) + 1
	case t < 2:
		return float64((float64((float64(-0.5*t)+2.5)*t)-4)*t) + 2
	default:
		return 0
	}
}

// newTaps returns the taps for resizing in values to out values.
func newTaps(out, in int) []taps {
	all := make([]taps, out)
	scale := float64(in) / float64(out)
	width := max(scale, 1)
	for i := range all {
		centre := float64((float64(i) + 0.5) * scale)
		first := max(int(math.Ceil(centre-float64(2*width)-0.5)), 0)
		last := min(int(math.Floor(centre+float64(2*width)-0.5)), in-1)
		exact, sum := make([]float64, last-first+1), 0.0
		for j := range exact {
			exact[j] = catmullRom((float64(first+j) + 0.5 - centre) / width)
			sum += exact[j]
		}
		weights, left, largest := make([]int32, len(exact)), int32(1<<weightBits), 0
		for j, weight := range exact {
			weights[j] = int32(math.RoundToEven(weight / sum * (1 << weightBits)))
			left -= weights[j]
			if weights[j] > weights[largest] {
				largest = j
			}
		}
		weights[largest] += left
		for len(weights) > 1 && weights[0] == 0 {
			first, weights = first+1, weights[1:]
		}
		for len(weights) > 1 && weights[len(weights)-1] == 0 {
			weights = weights[:len(weights)-1]
		}
		all[i] = taps{first, weights}
	}
	return all
}

// resizer scales planes. It reuses its memory, and must be used by one goroutine at a time.
type resizer struct {
	fromHeight, fromWidth, toHeight, toWidth int

	across, down []taps
	middle       []int32 // planes [fromHeight toWidth]
	sums         []int32 // [toWidth]
}

// prepare prepares the resizer for planes of the given sizes.
func (r *resizer) prepare(fromHeight, fromWidth, toHeight, toWidth, planes int) {
	if r.fromWidth != fromWidth || r.toWidth != toWidth {
		r.across = newTaps(toWidth, fromWidth)
	}
	if r.fromHeight != fromHeight || r.toHeight != toHeight {
		r.down = newTaps(toHeight, fromHeight)
	}
	r.fromHeight, r.fromWidth, r.toHeight, r.toWidth = fromHeight, fromWidth, toHeight, toWidth
	if n := planes * fromHeight * toWidth; cap(r.middle) < n {
		r.middle = make([]int32, n)
	}
	if cap(r.sums) < toWidth {
		r.sums = make([]int32, toWidth)
	}
}

// grey scales one plane from [H W] to to [h w].
func (r *resizer) grey(to []byte, toHeight, toWidth int, from []byte, height, width int) {
	r.prepare(height, width, toHeight, toWidth, 1)
	r.acrossOne(r.middle, from, 1)
	r.downOne(to, r.middle)
}

// colour scales the first channels of pixels [H W 4] to to, [planes h w], where planes is 3 or 4.
func (r *resizer) colour(to []byte, planes, toHeight, toWidth int, from []byte, height, width int) {
	r.prepare(height, width, toHeight, toWidth, planes)
	middle, plane := height*toWidth, toHeight*toWidth
	r.acrossThree(r.middle, from)
	if planes == 4 {
		r.acrossOne(r.middle[3*middle:], from[3:], 4)
	}
	for c := range planes {
		r.downOne(to[c*plane:(c+1)*plane], r.middle[c*middle:])
	}
}

// acrossOne resizes the rows of one plane, whose values are stride bytes apart.
func (r *resizer) acrossOne(middle []int32, from []byte, stride int) {
	for y := range r.fromHeight {
		row := from[y*r.fromWidth*stride:]
		for x, tap := range r.across {
			sum, at := int32(1<<(weightBits-middleBits-1)), tap.first*stride
			for _, weight := range tap.weights {
				sum += weight * int32(row[at])
				at += stride
			}
			middle[y*r.toWidth+x] = sum >> (weightBits - middleBits)
		}
	}
}

// acrossThree resizes the rows of the first three channels of pixels of four bytes.
func (r *resizer) acrossThree(middle []int32, from []byte) {
	const half, shift = 1 << (weightBits - middleBits - 1), weightBits - middleBits
	plane := r.fromHeight * r.toWidth
	for y := range r.fromHeight {
		row := from[y*r.fromWidth*4 : (y+1)*r.fromWidth*4]
		for x, tap := range r.across {
			red, green, blue := int32(half), int32(half), int32(half)
			pixels := row[tap.first*4:]
			for _, weight := range tap.weights {
				pixel := pixels[:4]
				red += weight * int32(pixel[0])
				green += weight * int32(pixel[1])
				blue += weight * int32(pixel[2])
				pixels = pixels[4:]
			}
			at := y*r.toWidth + x
			middle[at], middle[plane+at], middle[2*plane+at] = red>>shift, green>>shift, blue>>shift
		}
	}
}

// downOne resizes the columns of one plane.
func (r *resizer) downOne(to []byte, middle []int32) {
	const shift = weightBits + middleBits
	sums := r.sums[:r.toWidth]
	for y, tap := range r.down {
		for x := range sums {
			sums[x] = 1 << (shift - 1)
		}
		for k, weight := range tap.weights {
			row := middle[(tap.first+k)*r.toWidth:][:len(sums)]
			for x, value := range row {
				sums[x] += weight * value
			}
		}
		for x, sum := range sums {
			to[y*r.toWidth+x] = byte(min(max(sum>>shift, 0), 255))
		}
	}
}
