package export

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/tensor"
)

// members returns the samples of a group, by their places in it, that the detector compares.
func (p *predictive) members(group []int) (places []int) {
	if p.detector == nil {
		return nil
	}
	for place, position := range group {
		if p.detector.At(position) >= 0 {
			places = append(places, place)
		}
	}
	return places
}

// featuresOf returns the features of the members of an emission of several samples, [M batch F]:
// see samples.SamplePredictor.Features.
func (p *predictive) featuresOf(e *onnx.Emission, members []int, samples int) (string, error) {
	w := p.w
	var parts []string // [batch M width]
	for _, n := range p.features {
		x, stacked, err := e.Value(n)
		if err != nil {
			return "", err
		}
		shape := graph.ShapeOf(n)
		if stacked && len(members) < samples {
			x = pick(w, x, members, shape[1], len(shape) == 4)
		}
		var rows []string
		switch {
		case len(shape) == 2 && stacked:
			rows = []string{w.Node("Transpose", onnx.Attributes{"perm": []int{1, 0, 2}}, x)}
		case len(shape) == 2:
			rows = []string{w.Node("Unsqueeze", nil, x, w.Integers("axis", 1))}
		default:
			count := 1
			if stacked {
				count = len(members)
			}
			over := onnx.Attributes{"axes": []int{2, 3}, "keepdims": 0}
			for _, moment := range []string{x, w.Node("Mul", nil, x, x)} {
				rows = append(rows, w.Node("Reshape", nil, w.Node("ReduceMean", over, moment), w.Integers("shape", -1, count, shape[1])))
			}
		}
		for _, row := range rows {
			if !stacked && len(members) > 1 {
				row = w.Node("Expand", nil, row, w.Integers("members", 1, len(members), 1))
			}
			parts = append(parts, row)
		}
	}
	return w.Node("Transpose", onnx.Attributes{"perm": []int{1, 0, 2}}, p.concat(2, parts)), nil
}

// pick returns the members of stacked activations: [batch nC H W], or [n batch D].
func pick(w *onnx.Writer, x string, members []int, channels int, spatial bool) string {
	if !spatial {
		return w.Node("Gather", onnx.Attributes{"axis": 0}, x, w.Integers("members", members...))
	}
	var indices []int
	for _, m := range members {
		for c := range channels {
			indices = append(indices, m*channels+c)
		}
	}
	return w.Node("Gather", onnx.Attributes{"axis": 1}, x, w.Integers("members", indices...))
}

// inDistribution adds the output that decides whether images are like those trained on.
func (p *predictive) inDistribution(pixels, features string, c *evaluate.Calibration) error {
	threshold, err := c.NonconformityThreshold(p.o.Rate)
	if err != nil {
		return err
	}
	w, d := p.w, p.detector
	w.Scope("detector")
	defer w.Scope("")
	var spaces []detector.SubspaceWeights
	var classes, all gaussians
	for _, m := range d.Members {
		spaces = append(spaces, m.Subspace.Weights())
		classes.add(m.Classes.Means, m.Classes.Whitening)
		all.add(m.All.Means, m.All.Whitening)
	}
	z, mahalanobis := p.projected(features, spaces)
	relative := w.Node("Sub", nil, p.squaredDistance(z, classes, spaces[0].Dimensions), p.squaredDistance(z, all, spaces[0].Dimensions))
	overMembers := onnx.Attributes{"axes": []int{0}, "keepdims": 0}
	scores := []string{
		w.Node("ReduceMean", overMembers, mahalanobis), w.Node("ReduceMean", overMembers, relative),
		p.nearest(p.statistics(pixels), d.Statistics.Weights()),
	}
	for i, score := range scores {
		scale := d.Scales[i]
		centred := w.Node("Sub", nil, score, w.Float("median", scale.Median))
		scores[i] = w.Node("Div", nil, centred, w.Float("width", scale.Width()))
	}
	// The root of the sum of the squares of those above 0, or the largest if none is.
	zero := w.Float("zero", 0)
	var squares []string
	for _, score := range scores {
		above := w.Node("Max", nil, score, zero)
		squares = append(squares, w.Node("Mul", nil, above, above))
	}
	largest := w.Node("Max", nil, scores...)
	combined := w.Node("Where", nil, w.Node("Greater", nil, largest, zero), w.Node("Sqrt", nil, w.Node("Sum", nil, squares...)), largest)
	w.Output(inDistributionOutput, w.Node("LessOrEqual", nil, combined, w.Float("threshold", threshold)), onnx.Bool, -1)
	return nil
}

// projected returns the coordinates of features [M batch F] in the members' subspaces, [M batch d],
// and their Mahalanobis distances, [M batch]: see detector.SubspaceWeights.
func (p *predictive) projected(features string, spaces []detector.SubspaceWeights) (coordinates, mahalanobis string) {
	w, s := p.w, spaces[0]
	var scales, centers, axes, deviations, residuals []float32
	for _, space := range spaces {
		scales, centers = append(scales, space.Scale...), append(centers, space.Center...)
		axes = append(axes, tensor.Transposed(space.Axes, s.Dimensions, s.Features)...)
		for _, v := range space.Variances {
			deviations = append(deviations, float32(math.Sqrt(float64(v))))
		}
		residuals = append(residuals, space.Residual)
	}
	squared := func(x string, keep int) string {
		return w.Node("ReduceSumSquare", onnx.Attributes{"axes": []int{2}, "keepdims": keep}, x)
	}
	ratio := w.Node("Div", nil, features, w.Floats("scale", scales, len(spaces), 1, s.Features))
	root := w.Node("Sqrt", nil, w.Node("Min", nil, w.Node("Abs", nil, ratio), w.Float("ratio", s.MaxRatio)))
	signed := w.Node("Mul", nil, w.Node("Sign", nil, ratio), root)
	unit := w.Node("Div", nil, signed, w.Node("Sqrt", nil, w.Node("Max", nil, squared(signed, 1), w.Float("square", s.MinSquare))))
	deviation := w.Node("Sub", nil, unit, w.Floats("center", centers, len(spaces), 1, s.Features))
	coordinates = w.Node("MatMul", nil, deviation, w.Floats("axes", axes, len(spaces), s.Features, s.Dimensions))
	rest := w.Node("Max", nil, w.Node("Sub", nil, squared(deviation, 0), squared(coordinates, 0)), w.Float("zero", 0))
	along := w.Node("Div", nil, coordinates, w.Floats("deviation", deviations, len(spaces), 1, s.Dimensions))
	across := w.Node("Div", nil, rest, w.Floats("residual", residuals, len(spaces), 1))
	return coordinates, w.Node("Sqrt", nil, w.Node("Add", nil, squared(along, 0), across))
}

// nearest returns the mean distance of statistics [batch F] from their nearest neighbours, [batch].
func (p *predictive) nearest(statistics string, s detector.NeighbourWeights) string {
	w := p.w
	z := w.Node("Sub", nil, statistics, w.Floats("center", s.Center, s.Features))
	z = w.Node("Div", nil, z, w.Floats("scale", s.Scale, s.Features))
	z = w.Node("Clip", nil, z, w.Float("low", -s.MaxStandard), w.Float("high", s.MaxStandard))
	inner := w.Node("MatMul", nil, z, w.Floats("bank", tensor.Transposed(s.Bank, s.Rows, s.Features), s.Features, s.Rows))
	relative := w.Node("Sub", nil, w.Floats("squares", squaresOf(s.Bank, s.Features), s.Rows), w.Node("Mul", nil, inner, w.Float("two", 2)))
	least := w.NodeOf("TopK", 2, onnx.Attributes{"axis": -1, "largest": 0, "sorted": 0}, relative, w.Integers("neighbours", s.Neighbours))[0]
	own := w.Node("ReduceSumSquare", onnx.Attributes{"axes": []int{1}, "keepdims": 1}, z)
	distances := w.Node("Sqrt", nil, w.Node("Max", nil, w.Node("Add", nil, least, own), w.Float("zero", 0)))
	return w.Node("ReduceMean", onnx.Attributes{"axes": []int{1}, "keepdims": 0}, distances)
}

// gaussians are the normal distributions of the members of a detector, one after the other.
type gaussians struct{ means, whitening [][]float32 }

func (g *gaussians) add(means, whitening []float32) {
	g.means, g.whitening = append(g.means, means), append(g.whitening, whitening)
}

// squaredDistance returns the squared Mahalanobis distances of rows [M batch d] from the nearest
// mean, [M batch].
func (p *predictive) squaredDistance(z string, g gaussians, d int) string {
	w, members, classes := p.w, len(g.means), len(g.means[0])/d
	var whitening, means, squares []float32
	for i := range members {
		whitening = append(whitening, tensor.Transposed(g.whitening[i], d, d)...)
		means = append(means, tensor.Transposed(g.means[i], classes, d)...)
		squares = append(squares, squaresOf(g.means[i], d)...)
	}
	white := w.Node("MatMul", nil, z, w.Floats("whitening", whitening, members, d, d))
	inner := w.Node("MatMul", nil, white, w.Floats("means", means, members, d, classes))
	relative := w.Node("Sub", nil, w.Floats("squares", squares, members, 1, classes), w.Node("Mul", nil, inner, w.Float("two", 2)))
	over := onnx.Attributes{"axes": []int{2}, "keepdims": 0}
	distances := w.Node("Add", nil, w.Node("ReduceMin", over, relative), w.Node("ReduceSumSquare", over, white))
	return w.Node("Max", nil, distances, w.Float("zero", 0))
}

// squaresOf returns the squared norms of rows of d numbers.
func squaresOf(rows []float32, d int) (squares []float32) {
	for row := range slices.Chunk(rows, d) {
		sum := float32(0)
		for _, v := range row {
			sum += v * v
		}
		squares = append(squares, sum)
	}
	return squares
}

// statistics returns the statistics of images [batch C H W] of bytes, see package detector, [batch
// F].
func (p *predictive) statistics(pixels string) string {
	w, d := p.w, &p.m.Data
	small := w.Float("small", 1.0/255)
	toUnit := w.Float("unit", 1.0/255)
	logarithm := func(x string) string { // of a deviation of bytes
		return w.Node("Log", nil, w.Node("Add", nil, w.Node("Mul", nil, x, toUnit), small))
	}
	over := func(keep int) onnx.Attributes { return onnx.Attributes{"axes": []int{2, 3}, "keepdims": keep} }
	// moments returns the mean and the logarithm of the standard deviation, [batch C].
	moments := func(x string) []string {
		centred := w.Node("Sub", nil, x, w.Node("ReduceMean", over(1), x))
		variance := w.Node("ReduceMean", over(0), w.Node("Mul", nil, centred, centred))
		mean := w.Node("Mul", nil, w.Node("ReduceMean", over(0), x), toUnit)
		return []string{mean, logarithm(w.Node("Sqrt", nil, variance))}
	}
	// slice returns elements [from, to) of an axis.
	slice := func(x string, axis, from, to int) string {
		return w.Node("Slice", nil, x, w.Integers("from", from), w.Integers("to", to), w.Integers("axis", axis))
	}
	// rows joins values [batch C] as [batch C n] and returns them as [batch Cn].
	rows := func(values []string, channels int) string {
		var wide []string
		for _, v := range values {
			wide = append(wide, w.Node("Unsqueeze", nil, v, w.Integers("axis", 2)))
		}
		return w.Node("Reshape", nil, p.concat(2, wide), w.Integers("shape", -1, channels*len(values)))
	}
	values := moments(pixels)
	octave, h, width := pixels, d.Height, d.Width
	for range detector.MaxOctaves {
		if h < 2 || width < 2 {
			break
		}
		for _, axis := range []int{3, 2} {
			extent := map[int]int{2: h, 3: width}[axis]
			difference := w.Node("Sub", nil, slice(octave, axis, 1, extent), slice(octave, axis, 0, extent-1))
			root := w.Node("Sqrt", nil, w.Node("ReduceMean", over(0), w.Node("Mul", nil, difference, difference)))
			values = append(values, logarithm(root))
		}
		octave = w.Node("AveragePool", onnx.Attributes{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, octave)
		h, width = h/2, width/2
	}
	all := []string{rows(values, d.Channels)}
	if d.Channels > 1 {
		difference := w.Node("Sub", nil, slice(pixels, 1, 1, d.Channels), slice(pixels, 1, 0, d.Channels-1))
		all = append(all, rows(moments(difference), d.Channels-1))
	}
	return p.concat(1, all)
}
