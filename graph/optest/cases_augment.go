package optest

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor/random"
)

// naiveAugment follows the formula of op.Augment, pixel by pixel.
func naiveAugment(g op.Augment, images, channels, height, width int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		x, header := in[0], in[1]
		address := random.Address{
			Seed: uint64(header[graph.HeaderSeed]), Chain: uint32(header[graph.HeaderChain]), Step: uint64(header[graph.HeaderStep]), Stream: g.Stream,
		}
		side := int(math.Round(g.Erase * float64(min(height, width))))
		y := make([]float64, len(x))
		for b := range images {
			var words [8]uint32
			random.Bits(words[:], 8*b, address)
			draw := func(word, n int) int { return int(uint64(words[word]) * uint64(n) >> 32) }
			rows, columns := draw(1, 2*g.Shift+1)-g.Shift, draw(2, 2*g.Shift+1)-g.Shift
			angle := g.Rotation * math.Pi / 180 * (float64(words[3]>>8+1)*0x1p-23 - 1)
			factor := func(share, most float64) float64 { return math.Pow(1+math.Abs(share)*most, math.Copysign(1, share)) }
			shrink := factor(float64(words[6]>>8+1)*0x1p-23-1, g.Zoom)
			contrast := factor(float64(words[7]>>16+1)*0x1p-15-1, g.Contrast)
			brightness := (float64(words[7]&0xffff+1)*0x1p-15 - 1) * g.Brightness
			top, left := draw(4, height)-side/2, draw(5, width)-side/2
			for c := range channels {
				plane := x[(b*channels+c)*height*width:][:height*width]
				at := func(i, j int) float64 {
					if i < 0 || i >= height || j < 0 || j >= width {
						return 0
					}
					return plane[i*width+j]
				}
				for p := range height {
					for q := range width {
						if p >= top && p < top+side && q >= left && q < left+side {
							continue
						}
						from := q
						if g.Flip && words[0] >= 1<<31 {
							from = width - 1 - q
						}
						middleRow, middleColumn := float64(height-1)/2, float64(width-1)/2
						a, b1 := float64(p-rows)-middleRow, float64(from-columns)-middleColumn
						u := middleRow + shrink*(a*math.Cos(angle)-b1*math.Sin(angle))
						v := middleColumn + shrink*(a*math.Sin(angle)+b1*math.Cos(angle))
						i, j := int(math.Floor(u)), int(math.Floor(v))
						down, right := u-math.Floor(u), v-math.Floor(v)
						value := (1-down)*((1-right)*at(i, j)+right*at(i, j+1)) + down*((1-right)*at(i+1, j)+right*at(i+1, j+1))
						y[((b*channels+c)*height+p)*width+q] = contrast*value + brightness
					}
				}
			}
		}
		return y
	}
}

// placeErrors bounds the relative errors of bilinear interpolation at rounded places.
func placeErrors(g op.Augment, shape [4]int) float64 {
	return float64(max(shape[2], shape[3])) * (1 + g.Zoom) * (1 + g.Contrast)
}

const placesAreRounded = "places in x, up to its height and width times the zoom, are rounded, and so is the angle; contrast multiplies the errors"

// augmentCases tests each transform separately and all together, images of one row or column, and
// batches with several images in a block.
func augmentCases() []Case {
	var cases []Case
	all := op.Augment{Flip: true, Shift: 3, Rotation: 20, Zoom: 0.3, Contrast: 0.5, Brightness: 0.4, Erase: 0.4, Stream: 6}
	for _, c := range []struct {
		g     op.Augment
		shape [4]int
	}{
		{op.Augment{Flip: true, Stream: 1}, [4]int{9, 2, 5, 7}},
		{op.Augment{Flip: true, Stream: 1}, [4]int{33, 1, 1, 2}},
		{op.Augment{Shift: 2, Stream: 2}, [4]int{31, 3, 5, 7}},
		{op.Augment{Flip: true, Shift: 8, Stream: 2}, [4]int{7, 1, 33, 9}},
		{op.Augment{Erase: 0.5, Stream: 3}, [4]int{9, 2, 5, 9}},
		{op.Augment{Erase: 0.99, Stream: 3}, [4]int{5, 1, 1, 1}},
		{op.Augment{Rotation: 10, Stream: 4}, [4]int{9, 1, 7, 5}},
		{op.Augment{Rotation: 180, Stream: 5}, [4]int{33, 2, 9, 17}},
		{op.Augment{Rotation: 45, Flip: true, Stream: 5}, [4]int{3, 1, 1, 31}},
		{op.Augment{Zoom: 0.5, Stream: 4}, [4]int{9, 2, 7, 5}},
		{op.Augment{Zoom: 4, Flip: true, Shift: 2, Stream: 4}, [4]int{33, 1, 9, 12}},
		{op.Augment{Contrast: 0.5, Stream: 4}, [4]int{9, 3, 7, 5}},
		{op.Augment{Brightness: 4, Shift: 1, Stream: 4}, [4]int{9, 3, 7, 5}},
		{op.Augment{Contrast: 4, Brightness: 0.5, Erase: 0.3, Stream: 4}, [4]int{9, 3, 7, 5}},
		{all, [4]int{67, 3, 8, 11}},
		{all, [4]int{257, 1, 5, 4}},
	} {
		s := c.shape
		row := Case{
			Name: fmt.Sprintf("augment %+v %v", c.g, s), Op: c.g, NoGradient: true, Steps: 3,
			Inputs: []Input{Float(Normal, s[:]...), Header}, Naive: naiveAugment(c.g, s[0], s[1], s[2], s[3]), Terms: 1,
		}
		if c.g.Contrast > 0 || c.g.Brightness > 0 {
			row.Terms = 2
		}
		if c.g.Rotation > 0 || c.g.Zoom > 0 {
			row.Terms, row.Loosen, row.Reason = 4, placeErrors(c.g, s), placesAreRounded
		}
		cases = append(cases, row)
	}
	for _, s := range [][4]int{{100, 1, 28, 28}, {100, 3, 32, 32}} {
		cases = append(cases, Case{
			Name: fmt.Sprintf("augment %v", s), Op: all, NoGradient: true, Inputs: []Input{Float(Normal, s[:]...), Header},
			Naive: naiveAugment(all, s[0], s[1], s[2], s[3]), Terms: 4, Loosen: placeErrors(all, s), Reason: placesAreRounded,
			Speed: true, Flops: 12 * 100 * float64(s[1]*s[2]*s[3]),
		})
	}
	return cases
}
