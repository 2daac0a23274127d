package detector

import "math"

// maxOctaves is the maximum number of octaves of the spectrum in the statistics.
const maxOctaves = 4

// statistics appends statistics of an image to all, [C H W] bytes, that need no network:
//
//   - of each channel: the mean, the logarithm of the standard deviation, and the logarithm of the
//     root mean square of the differences of horizontal and of vertical neighbours, for the image
//     and for its halvings. These are the powers of Haar wavelets, in octaves of the spectrum.
//   - of neighbouring channels: the mean of their difference, and the logarithm of its standard
//     deviation.
//
// plane is a buffer of H*W numbers.
func statistics(all []float32, plane []int32, pixels []byte, channels, height, width int) []float32 {
	size := height * width
	add := func(v float64) { all = append(all, float32(v)) }
	addLogarithm := func(v float64) { all = append(all, float32(math.Log(v+1.0/255))) }
	for c := range channels {
		for i, v := range pixels[c*size : (c+1)*size] {
			plane[i] = int32(v)
		}
		mean, std := moments(plane)
		add(mean)
		addLogarithm(std)
		octave, h, w, unit := plane, height, width, 255.0
		for range maxOctaves {
			if h < 2 || w < 2 {
				break
			}
			across, down := roughness(octave, h, w)
			addLogarithm(across / unit)
			addLogarithm(down / unit)
			octave, h, w, unit = halve(octave, h, w), h/2, w/2, 4*unit
		}
	}
	for c := range channels - 1 {
		next := pixels[(c+1)*size:]
		for i, v := range pixels[c*size : (c+1)*size] {
			plane[i] = int32(next[i]) - int32(v)
		}
		mean, std := moments(plane)
		add(mean)
		addLogarithm(std)
	}
	return all
}

// moments returns the mean and the standard deviation of bytes, as fractions of 255. Sums of
// integers are exact, and faster than of floats.
func moments(x []int32) (mean, std float64) {
	var sum, squares int64
	for _, v := range x {
		sum += int64(v)
		squares += int64(v) * int64(v)
	}
	n := int64(len(x))
	return float64(sum) / float64(n) / 255, math.Sqrt(float64(n*squares-sum*sum)) / float64(n) / 255
}

// roughness returns the root mean squares of the differences of horizontal and vertical neighbours.
func roughness(x []int32, h, w int) (across, down float64) {
	var sumAcross, sumDown int64
	for i := range h {
		row := x[i*w : (i+1)*w]
		for j, v := range row[1:] {
			d := int64(v - row[j])
			sumAcross += d * d
		}
		if i+1 < h {
			for j, v := range x[(i+1)*w : (i+2)*w] {
				d := int64(v - row[j])
				sumDown += d * d
			}
		}
	}
	return math.Sqrt(float64(sumAcross) / float64(h*(w-1))), math.Sqrt(float64(sumDown) / float64((h-1)*w))
}

// halve sums blocks of 2x2, without an odd last row or column, in place: no sum is written behind
// the numbers that are read next.
func halve(x []int32, h, w int) []int32 {
	half := x[:(h/2)*(w/2)]
	for i := range h / 2 {
		upper, lower := x[2*i*w:(2*i+1)*w], x[(2*i+1)*w:(2*i+2)*w]
		row := half[i*(w/2) : (i+1)*(w/2)]
		for j := range row {
			row[j] = upper[2*j] + upper[2*j+1] + lower[2*j] + lower[2*j+1]
		}
	}
	return half
}
