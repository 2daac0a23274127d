package optest

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor/random"
)

// examples returns the examples in a step's batch, from a data set of the given size.
func examples(batch op.Batch, size int, header []float64) []int {
	var list []int
	for i := range batch.Size {
		position := int(header[graph.HeaderStep])*batch.Size + i
		epoch, example := position/size, position%size
		if batch.Order == op.Symmetric && epoch%2 == 1 {
			epoch, example = epoch-1, size-1-example
		}
		if batch.Order == op.Independent {
			epoch, example = int(header[graph.HeaderStep]), i
		}
		if batch.Order != op.Sequential {
			example = int(random.Permute(uint64(example), uint64(size),
				uint64(header[graph.HeaderSeed]), uint32(header[graph.HeaderChain]), uint64(epoch)))
		}
		list = append(list, example)
	}
	return list
}

func naiveImages(g op.GatherImages, size, pixels, channels int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		var y []float64
		for _, example := range examples(g.Batch, size, in[1]) {
			for j := range pixels {
				channel := j * channels / pixels
				y = append(y, (in[0][example*pixels+j]/255-g.Mean.At(channel))/g.Std.At(channel))
			}
		}
		return y
	}
}

func naiveLabels(batch op.Batch, size int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		var y []float64
		for _, example := range examples(batch, size, in[1]) {
			y = append(y, in[0][example])
		}
		return y
	}
}

func naiveRows(batch op.Batch, size, width int) func(in [][]float64) []float64 {
	return func(in [][]float64) []float64 {
		var y []float64
		for _, example := range examples(batch, size, in[1]) {
			y = append(y, in[0][example*width:(example+1)*width]...)
		}
		return y
	}
}

// orders are the orders of examples.
var orders = []op.Batch{{}, {Order: op.Shuffled}, {Order: op.Symmetric}, {Order: op.Independent}}

// gatherRowsCases tests batches that straddle two epochs, batches of a whole epoch, and rows of one
// number, of several, and of two axes.
func gatherRowsCases() []Case {
	var cases []Case
	for _, batch := range orders {
		for _, size := range [][]int{{13, 8}, {31, 31, 5}, {1, 1, 3}, {257, 33, 7}, {33, 1, 3, 5}} {
			batch.Size = size[1]
			rows := append([]int{size[0]}, size[2:]...)
			width := 1
			for _, extent := range size[2:] {
				width *= extent
			}
			cases = append(cases, Case{
				Name: fmt.Sprintf("gather rows %d, %+v", size, batch), Op: op.GatherRows{Batch: batch}, NoGradient: true, Steps: 5,
				Inputs: []Input{Float(Normal, rows...), Header}, Naive: naiveRows(batch, size[0], width), Terms: 1,
			})
		}
	}
	return cases
}

func gatherCases() []Case {
	var cases []Case
	for _, batch := range orders {
		// Five steps of 8 out of 13: three epochs, and batches that straddle two.
		for _, size := range [][2]int{{13, 8}, {13, 13}, {1, 1}, {257, 33}} {
			batch.Size = size[1]
			images := op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.1307, 0.5, 0.9), Std: op.ChannelsOf(0.3081, 0.2, 0.1)}
			if size[0] == 13 {
				images.Mean, images.Std = op.ChannelsOf(0.1307), op.ChannelsOf(0.3081)
			}
			cases = append(cases, Case{
				Name: fmt.Sprintf("gather images %d, %+v", size, batch), Op: images, NoGradient: true, Steps: 5,
				Inputs: []Input{Bytes(256, size[0], 3, 5, 7), Header}, Naive: naiveImages(images, size[0], 3*5*7, 3), Terms: 2,
			}, Case{
				Name: fmt.Sprintf("gather labels %d, %+v", size, batch), Op: op.GatherLabels{Batch: batch}, NoGradient: true, Steps: 5,
				Inputs: []Input{Labels(1000, size[0]), Header}, Naive: naiveLabels(batch, size[0]), Terms: 1,
			})
		}
	}
	batch := op.Batch{Size: 100, Order: op.Shuffled}
	images := op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.1307), Std: op.ChannelsOf(0.3081)}
	colour := op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.4, 0.5, 0.6, 0.7), Std: op.ChannelsOf(0.1, 0.2, 0.3, 0.4)}
	cases = append(cases, Case{
		Name: "gather images of 28x28", Op: images, NoGradient: true, Inputs: []Input{Bytes(256, 1000, 1, 28, 28), Header},
		Naive: naiveImages(images, 1000, 784, 1), Terms: 2, Speed: true, Flops: 2 * 100 * 784,
	}, Case{
		Name: "gather images of 4x8x8", Op: colour, NoGradient: true, Inputs: []Input{Bytes(256, 300, 4, 8, 8), Header},
		Naive: naiveImages(colour, 300, 256, 4), Terms: 2,
	})
	cases = append(cases, gatherRowsCases()...)
	for _, size := range [][3]int{{13, 8, 10}, {31, 31, 1}, {1, 1, 3}, {257, 33, 7}} {
		batch := op.Batch{Size: size[1]}
		width := size[2]
		cases = append(cases, Case{
			Name: fmt.Sprintf("store rows %d", size), Op: op.StoreRows{Batch: batch}, NoGradient: true, Steps: 5,
			Inputs: []Input{Float(Normal, size[1], width), Float(Normal, size[0], width), Header}, Terms: 1,
			Naive: func(in [][]float64) []float64 {
				for i, example := range examples(batch, size[0], in[2]) {
					copy(in[1][example*width:(example+1)*width], in[0][i*width:])
				}
				return []float64{float64(batch.Size)}
			},
		})
	}
	// The cases make five steps: as many as the table has entries, more, or fewer.
	for _, length := range []int{1, 3, 5, 31} {
		for _, factors := range []int{1, 6} {
			cases = append(cases, Case{
				Name: fmt.Sprintf("scaled entry [%d], %d factors", length, factors), Op: op.ScaledEntry{}, NoGradient: true, Steps: 5,
				Inputs: []Input{Float(Normal, length), Float(Normal, factors), Float(Below(factors), 3), Header}, Terms: 1,
				Naive: func(in [][]float64) []float64 {
					return []float64{in[0][min(int(in[3][graph.HeaderStep]), length-1)] * in[1][int(in[2][0])]}
				},
			})
		}
		cases = append(cases, Case{
			Name: fmt.Sprintf("periodic [%d]", length), Op: op.Periodic{}, NoGradient: true, Steps: 5,
			Inputs: []Input{Float(Normal, length), Header}, Terms: 1,
			Naive: func(in [][]float64) []float64 { return []float64{in[0][int(in[1][graph.HeaderStep])%length]} },
		})
	}
	return cases
}
