package decode

import (
	"math"
	"slices"
)

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

// newTaps returns the taps for resizing in values to out values. Its memory does not grow with in,
// except for buffers of one output value: an image can have one column and MaxPixels rows.
func newTaps(out, in int) []taps {
	all := make([]taps, out)
	var exactBuffer []float64
	var weightBuffer []int32
	scale := float64(in) / float64(out)
	width := max(scale, 1)
	for i := range all {
		centre := float64((float64(i) + 0.5) * scale)
		first := max(int(math.Ceil(centre-float64(2*width)-0.5)), 0)
		last := min(int(math.Floor(centre+float64(2*width)-0.5)), in-1)
		if n := last - first + 1; n > cap(exactBuffer) {
			exactBuffer, weightBuffer = make([]float64, n), make([]int32, n)
		}
		exact, sum := exactBuffer[:last-first+1], 0.0
		for j := range exact {
			exact[j] = catmullRom((float64(first+j) + 0.5 - centre) / width)
			sum += exact[j]
		}
		weights, left, largest := weightBuffer[:len(exact)], int32(1<<weightBits), 0
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
		all[i] = taps{first, slices.Clone(weights)}
	}
	return all
}

// Resizer scales planes. It reuses its memory, and must be used by one goroutine at a time.
//
// It resizes each row and adds it to the sums of the output rows that it contributes to, so that
// its memory depends on the size of the output only. The sums of integers are the same in any
// order.
type Resizer struct {
	fromHeight, fromWidth, toHeight, toWidth int

	Crop bool // scale only the centre of an image, of the output's aspect ratio
	bits int  // see Decoder.SetBits

	across, down []taps
	starts, ends []int       // see active
	stopped      func() bool // if not nil, is called before each row: resizing stops if it is true
	shallow      sums[int32] // of bytes
	deep         sums[int64] // of 16-bit values
}

// sums are the sums of output values, and a resized row that is added to them.
type sums[T int32 | int64] struct {
	row []T // planes [toWidth]
	all []T // planes [toHeight toWidth]
}

// cropping returns the resizer with crop. Taps are made again if that changes them.
func (r Resizer) cropping(crop bool) Resizer {
	if r.Crop != crop {
		r.Crop, r.toHeight = crop, 0
	}
	return r
}

// prepare prepares the resizer for images of the given sizes.
func (r *Resizer) prepare(fromHeight, fromWidth, toHeight, toWidth int) {
	if r.fromHeight == fromHeight && r.fromWidth == fromWidth && r.toHeight == toHeight && r.toWidth == toWidth {
		return
	}
	height, width := fromHeight, fromWidth
	if r.Crop {
		height, width = centre(fromHeight, fromWidth, toHeight, toWidth)
	}
	r.across = shifted(newTaps(toWidth, width), (fromWidth-width)/2)
	r.down = shifted(newTaps(toHeight, height), (fromHeight-height)/2)
	r.starts, r.ends = active(r.down)
	r.fromHeight, r.fromWidth, r.toHeight, r.toWidth = fromHeight, fromWidth, toHeight, toWidth
}

// centre returns the size of the largest part of an image with the aspect ratio of the output,
// rounded.
func centre(height, width, toHeight, toWidth int) (h, w int) {
	if height*toWidth > width*toHeight {
		return max(1, (width*toHeight+toWidth/2)/toWidth), width
	}
	return height, max(1, (height*toWidth+toHeight/2)/toHeight)
}

// shifted moves taps by a number of input values.
func shifted(all []taps, by int) []taps {
	for i := range all {
		all[i].first += by
	}
	return all
}

// active returns, for each output value, the first input value on which it or a later one
// depends, and the end of the input values on which it or an earlier one depends. Both ascend.
func active(all []taps) (starts, ends []int) {
	starts, ends = make([]int, len(all)), make([]int, len(all))
	for i, tap := range all {
		starts[i], ends[i] = tap.first, tap.first+len(tap.weights)
		if i > 0 {
			ends[i] = max(ends[i], ends[i-1])
		}
	}
	for i := len(all) - 2; i >= 0; i-- {
		starts[i] = min(starts[i], starts[i+1])
	}
	return starts, ends
}

// Grey scales one plane to to, [toHeight toWidth]. row returns the input rows, in ascending order.
func (r *Resizer) Grey(to []byte, toHeight, toWidth, height, width int, row func(y int) []byte) {
	r.prepare(height, width, toHeight, toWidth)
	r.bytes(to, 1, func(y int) { r.acrossOne(r.shallow.row, row(y), 1) })
}

// colour scales the first channels of rows of pixels [W 4] to to, [planes toHeight toWidth], where
// planes is 3 or 4.
func (r *Resizer) colour(to []byte, planes, toHeight, toWidth, height, width int, row func(y int) []byte) {
	r.prepare(height, width, toHeight, toWidth)
	r.bytes(to, planes, func(y int) {
		pixels := row(y)
		r.acrossThree(r.shallow.row, pixels)
		if planes == 4 {
			r.acrossOne(r.shallow.row[3*toWidth:], pixels[3:], 4)
		}
	})
}

// wide scales the first planes channels of rows of 16-bit values, stride values apart, to bytes
// [planes toHeight toWidth]. It rounds once, at the end.
func (r *Resizer) wide(to []byte, planes, toHeight, toWidth, height, width, stride int, row func(y int) []uint16) {
	const unit = 257 << (2 * weightBits) // of 1, in bytes: 65535 is 255
	r.prepare(height, width, toHeight, toWidth)
	resize(r, &r.deep, planes, unit/2, func(y int) {
		values := row(y)
		for c := range planes {
			r.acrossWide(r.deep.row[c*toWidth:], values[c:], stride)
		}
	})
	for i, sum := range r.deep.all {
		to[i] = byte(min(max(sum/unit, 0), 255))
	}
}

// bytes is resize for bytes, whose result it writes to to.
func (r *Resizer) bytes(to []byte, planes int, across func(y int)) {
	resize(r, &r.shallow, planes, 1<<(weightBits+middleBits-1), across)
	for i, sum := range r.shallow.all {
		to[i] = byte(min(max(sum>>(weightBits+middleBits), 0), 255))
	}
}

// resize calls across, which resizes an input row into s.row, for each row that has a weight, and
// sums planes [toHeight toWidth] into s.all, starting at half.
func resize[T int32 | int64](r *Resizer, s *sums[T], planes int, half T, across func(y int)) {
	s.row = slices.Grow(s.row[:0], planes*r.toWidth)[:planes*r.toWidth]
	n := planes * r.toHeight * r.toWidth
	s.all = slices.Grow(s.all[:0], n)[:n]
	for i := range s.all {
		s.all[i] = half
	}
	from := 0
	for y := range r.fromHeight {
		if r.stopped != nil && r.stopped() {
			return
		}
		for from < len(r.ends) && r.ends[from] <= y {
			from++
		}
		resized := false
		for out := from; out < len(r.down) && r.starts[out] <= y; out++ {
			tap := r.down[out]
			k := y - tap.first
			if k < 0 || k >= len(tap.weights) || tap.weights[k] == 0 {
				continue
			}
			if !resized {
				across(y)
				resized = true
			}
			s.add(r, out, planes, T(tap.weights[k]))
		}
	}
}

// add adds the weighted row to the sums of an output row.
func (s *sums[T]) add(r *Resizer, out, planes int, weight T) {
	for c := range planes {
		row := s.row[c*r.toWidth:][:r.toWidth]
		sums := s.all[(c*r.toHeight+out)*r.toWidth:][:len(row)]
		for x, value := range row {
			sums[x] += weight * value
		}
	}
}

// acrossOne resizes a row of one plane, whose values are stride bytes apart.
func (r *Resizer) acrossOne(to []int32, row []byte, stride int) {
	for x, tap := range r.across {
		sum, at := int32(1<<(weightBits-middleBits-1)), tap.first*stride
		for _, weight := range tap.weights {
			sum += weight * int32(row[at])
			at += stride
		}
		to[x] = sum >> (weightBits - middleBits)
	}
}

// acrossWide is acrossOne for 16-bit values, without rounding.
func (r *Resizer) acrossWide(to []int64, row []uint16, stride int) {
	for x, tap := range r.across {
		sum, at := int64(0), tap.first*stride
		for _, weight := range tap.weights {
			sum += int64(weight) * int64(row[at])
			at += stride
		}
		to[x] = sum
	}
}

// acrossThree resizes the first three channels of a row of pixels of four bytes.
func (r *Resizer) acrossThree(to []int32, row []byte) {
	const half, shift = 1 << (weightBits - middleBits - 1), weightBits - middleBits
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
		to[x], to[r.toWidth+x], to[2*r.toWidth+x] = red>>shift, green>>shift, blue>>shift
	}
}
