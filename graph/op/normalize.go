package op

import (
	"cmp"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// There is no batch norm: it makes the prediction for one example depend on the others of its
// batch. A likelihood of independent examples, and an average over its posterior, must not have
// that.

// FilterResponseNorm divides each channel of each image by its root mean square, then applies a
// learned scale and shift:
//
//	y[b c h w] = gamma[c] x[b c h w] / sqrt(mean over h w of x^2 + Epsilon) + beta[c]
//
// x [B C H W], gamma [C], beta [C] -> y [B C H W]. Threshold usually follows. Source: Singh and
// Krishnan, Filter response normalization layer (2020), equations 1 to 3. A Threshold that follows
// is fused into it, and after that the sum of a residual block and a SiLU or ReLU.
type FilterResponseNorm struct {
	Epsilon float64

	threshold, add bool
	activation     activation
}

// activation is the last step of a normalization. The kernels use the same numbers.
type activation int

const (
	noActivation activation = iota
	siluActivation
	reluActivation
)

// GroupNorm standardises each group of neighbouring channels of an image, then applies a learned
// scale and shift to each channel:
//
//	y[b c h w] = gamma[c] (x[b c h w] - mean) / sqrt(variance + Epsilon) + beta[c]
//
// x [B C H W], gamma [C], beta [C] -> y [B C H W]; Groups must divide C. One group is layer
// normalisation, C groups are instance normalisation. Source: Wu and He, Group normalization
// (2018).
type GroupNorm struct {
	Groups  int
	Epsilon float64
}

// normalization has the attributes of both ops; groups is 0 if each channel is a group.
type normalization struct {
	groups     int
	center     bool
	threshold  bool       // y = max(..., tau), tau [C] being one more input
	add        bool       // after the threshold: y + r, with one more input r [B C H W]
	activation activation // the last step
	epsilon    float64
}

func (f FilterResponseNorm) normalization() normalization {
	return normalization{threshold: f.threshold, add: f.add, activation: f.activation, epsilon: f.Epsilon}
}
func (g GroupNorm) normalization() normalization {
	return normalization{groups: g.Groups, center: true, epsilon: g.Epsilon}
}

// Name implements graph.Op.
func (FilterResponseNorm) Name() string { return "filter response norm" }

// Name implements graph.Op.
func (GroupNorm) Name() string { return "group norm" }

// Shape implements graph.Op.
func (f FilterResponseNorm) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return f.normalization().shape(in)
}

// Shape implements graph.Op.
func (g GroupNorm) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if g.Groups < 1 {
		return nil, errors.Errorf("groups must be at least 1, got %d", g.Groups)
	}
	return g.normalization().shape(in)
}

// Fuse implements graph.Fuser.
func (f FilterResponseNorm) Fuse(consumer graph.Op) (graph.Op, bool) {
	last := f.activation == noActivation
	switch consumer {
	case Threshold{}:
		ok := !f.threshold
		f.threshold = true
		return f, ok
	case Add{}, Add{relu: true}:
		ok := f.threshold && !f.add && last
		if f.add = true; consumer == (Add{relu: true}) {
			f.activation = reluActivation
		}
		return f, ok
	case SiLU{}:
		f.activation = siluActivation
		return f, f.threshold && last
	case ReLU{}:
		f.activation = reluActivation
		return f, f.threshold && last
	}
	return nil, false
}

// Accepts implements graph.Selective: the sum that is fused does not broadcast.
func (f FilterResponseNorm) Accepts(in []tensor.Shape) bool { return !f.add || in[4].Equal(in[0]) }

// Lower implements graph.Op.
func (f FilterResponseNorm) Lower(l *graph.Lowering) { f.normalization().lower(l) }

// Lower implements graph.Op.
func (g GroupNorm) Lower(l *graph.Lowering) { g.normalization().lower(l) }

// Gradients implements graph.Differentiable.
func (f FilterResponseNorm) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return f.normalization().gradients(b, in, dout)
}

// Gradients implements graph.Differentiable.
func (g GroupNorm) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return g.normalization().gradients(b, in, dout)
}

// shape checks the inputs: x, gamma, beta and, if they are fused, a threshold and a summand.
func (n normalization) shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 1, 1}
	if n.threshold {
		ranks = append(ranks, 1)
	}
	if n.add {
		ranks = append(ranks, 4)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	channels := in[0][1]
	if in[1][0] != channels || in[2][0] != channels {
		return nil, errors.Errorf("gamma and beta must have one element for each of %d channels, got %d and %d", channels, in[1][0], in[2][0])
	}
	if n.groups > 0 && channels%n.groups != 0 {
		return nil, errors.Errorf("groups must divide the %d channels, got %d", channels, n.groups)
	}
	if !(n.epsilon > 0) || math.IsInf(n.epsilon, 1) {
		return nil, errors.Errorf("epsilon must be positive and finite, got %v", n.epsilon)
	}
	return in[0], nil
}

// groupLayout divides a tensor [B C H W] into the groups of all images, which are its rows. A
// group has channels of width elements.
type groupLayout struct {
	rows, channels, width int
	groups                int // of an image
}

func (n normalization) layout(x tensor.Shape) groupLayout {
	groups := cmp.Or(n.groups, x[1])
	return groupLayout{x[0] * groups, x[1] / groups, x[2] * x[3], groups}
}

// grid returns a block for each group of each image.
func (m groupLayout) grid() tensor.Grid {
	return tensor.Blocks{Count: m.rows, Threads: min(m.channels*m.width, SumThreads)}
}

func (n normalization) arguments(l *graph.Lowering, m groupLayout, x tensor.Shape) []tensor.Argument {
	return []tensor.Argument{
		tensor.Int(m.rows), tensor.Int(m.channels), tensor.Int(m.width), tensor.Int(x[1]), tensor.Bool(n.center), tensor.Float(l.DType, n.epsilon),
	}
}

// moments fills mean with the mean of each group, or 0 if n does not centre, and inverse with
// 1/sqrt(mean square distance from it + epsilon). x has the groups one after the other. The sums
// are in float64, and the squares are of differences: E[x^2] - E[x]^2 would cancel.
func moments[T float32 | float64](x []T, n normalization, mean, inverse []float64) {
	size := float64(len(x) / len(mean))
	clear(mean)
	if n.center {
		kernel.WideSumPlanes(mean, x)
		for i := range mean {
			mean[i] /= size
		}
	}
	kernel.WideSquaresPlanes(inverse, x, mean)
	for i, squares := range inverse {
		inverse[i] = 1 / math.Sqrt(squares/size+n.epsilon)
	}
}

// groupsPerPass is the number of groups, and of planes within them, that the kernels process at a
// time, with one accumulator each.
const groupsPerPass = kernel.PlanesTogether

// lower emits the launch. Filter response normalization, which has neither groups nor a mean, has a
// kernel of its own on GPUs.
func (n normalization) lower(l *graph.Lowering) {
	m := n.layout(l.Shape)
	stem, buffers := "normalize_fwd", []tensor.Argument{l.Out(), l.In(0), l.In(1), l.In(2)}
	for i, fused := range []bool{n.threshold, n.add} {
		if fused {
			buffers = append(buffers, l.In(3+i))
		}
	}
	if n.threshold {
		stem = "normalize_threshold_fwd"
	}
	run := graph.Pick(l, normalize(n, m, valuesOf(SiLU{}.unary().value, kernel.SiLU)), normalize(n, m, valuesOf[float64](SiLU{}.unary().value, nil)))
	if n.overRows(m) {
		run = graph.Pick(l, normalizeRows[float32], normalizeRows[float64])(n, m)
	}
	host := tensor.RowTiles(m.rows, m.groups, m.channels*m.width, run)
	if n.groups > 0 || n.center {
		l.Emit(stem, m.grid(), host, append(buffers, n.arguments(l, m, l.Shape)...)...)
		return
	}
	tau, r := buffers[2], buffers[1] // not read
	if n.threshold {
		tau = buffers[4]
	}
	if n.add {
		r = buffers[5]
	}
	ending, lanes, grid := rowKernel(l.DType, m.rows, m.width)
	l.EmitCalls(stem, []tensor.Call{l.Call("normalize_rows"+ending, grid, append(buffers[:4:4], tau, r,
		tensor.Int(m.rows), tensor.Int(l.Shape[1]), tensor.Int(m.width), tensor.Int(lanes),
		tensor.Bool(n.threshold), tensor.Bool(n.add), tensor.Int(int(n.activation)), tensor.Float(l.DType, n.epsilon))...)}, host, buffers...)
}

// normalize computes rows lo to hi. The normalization of a channel is an affine function of x,
// whose coefficients follow from the moments of its group; what is fused with it comes after, while
// the planes are in the cache.
func normalize[T float32 | float64](n normalization, m groupLayout, silu func(y, x []T)) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		y, x, gamma, beta := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		var tau, r []T
		if n.threshold {
			tau = tensor.Slice[T](a, 4)
		}
		if n.add {
			r = tensor.Slice[T](a, 5)
		}
		var means, inverses [groupsPerPass]float64
		var affine [groupsPerPass]kernel.Affine
		var bounds [groupsPerPass]T
		size := m.channels * m.width
		for row := lo; row < hi; row += groupsPerPass {
			end := min(row+groupsPerPass, hi)
			mean, inverse := means[:end-row], inverses[:end-row]
			moments(x[row*size:end*size], n, mean, inverse)
			for plane := row * m.channels; plane < end*m.channels; plane += groupsPerPass {
				last := min(plane+groupsPerPass, end*m.channels)
				for i := range last - plane {
					group, channel := (plane+i)/m.channels-row, (plane+i)%len(gamma)
					affine[i] = kernel.Affine{Mean: mean[group], Scale: float64(gamma[channel]) * inverse[group], Shift: float64(beta[channel])}
				}
				from, to := x[plane*m.width:last*m.width], y[plane*m.width:last*m.width]
				kernel.WideAffinePlanes(to, from, affine[:last-plane])
				if n.threshold {
					kernel.RaisePlanes(to, to, ofChannels(bounds[:last-plane], tau, plane))
				}
				if n.add {
					kernel.Add(to, to, r[plane*m.width:last*m.width])
				}
				switch n.activation {
				case siluActivation:
					silu(to, to)
				case reluActivation:
					kernel.Raise(to, to, 0)
				}
			}
		}
	}
}

func (n normalization) gradients(b *graph.Builder, in []*graph.Node, dout *graph.Node) []*graph.Node {
	return []*graph.Node{
		b.Apply(normalizeBackward{n}, dout, in[0], in[1]),
		b.Apply(normalizeBackwardScale{n}, dout, in[0]),
		b.Apply(biasBackward{}, dout),
	}
}

// normalizeBackward is the gradient by x. With z the normalised x, dz = gamma dout and s the root
// in the denominator of the forward formula,
//
//	dx = (dz - mean(dz) - z mean(z dz)) / s
//
// where the means are over a group, and mean(dz) is left out if x is not centred: dout [B C H W], x
// [B C H W], gamma [C] -> dx [B C H W]. It computes z from x again, so that z need not be kept.
type normalizeBackward struct{ normalization normalization }

func (normalizeBackward) Name() string { return "normalization gradient of input" }

func (g normalizeBackward) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4, 1); err != nil {
		return nil, err
	}
	return in[1], checkEqual(in[0], in[1])
}

func (g normalizeBackward) Lower(l *graph.Lowering) {
	m := g.normalization.layout(l.Shape)
	run := graph.Pick(l, normalizeGradient[float32], normalizeGradient[float64])
	if g.normalization.overRows(m) {
		run = graph.Pick(l, normalizeRowsGradient[float32], normalizeRowsGradient[float64])
	}
	l.Emit("normalize_bwd_input", m.grid(), tensor.RowTiles(m.rows, m.groups, m.channels*m.width, run(g.normalization, m)),
		append([]tensor.Argument{l.Out(), l.In(0), l.In(1), l.In(2)}, g.normalization.arguments(l, m, l.Shape)...)...)
}

// normalizeGradient returns the loop over groups of an image. It reads x and dout twice: the first
// pass computes the moments and, from a sum and a sum of products for each plane, the two means of
// the formula; the second combines them as dx = A dout - ((x - Mean) B + C), see
// kernel.WideCombinePlanes.
func normalizeGradient[T float32 | float64](n normalization, m groupLayout) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, x, gamma := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Slice[T](a, 3)
		var means, inverses, ofPlanes, products, sums [groupsPerPass]float64
		var combination [groupsPerPass]kernel.Combination
		size := m.channels * m.width
		for row := lo; row < hi; row += groupsPerPass {
			end := min(row+groupsPerPass, hi)
			mean, inverse := means[:end-row], inverses[:end-row]
			moments(x[row*size:end*size], n, mean, inverse)
			var total, product [groupsPerPass]float64
			for plane := row * m.channels; plane < end*m.channels; plane += groupsPerPass {
				last := min(plane+groupsPerPass, end*m.channels)
				count, from, dy := last-plane, x[plane*m.width:last*m.width], dout[plane*m.width:last*m.width]
				for i := range count {
					ofPlanes[i] = mean[(plane+i)/m.channels-row]
				}
				kernel.WideProductsPlanes(products[:count], dy, from, ofPlanes[:count])
				if n.center {
					kernel.WideSumPlanes(sums[:count], dy)
				}
				for i := range count {
					group, scale := (plane+i)/m.channels-row, float64(gamma[(plane+i)%len(gamma)])
					total[group] += scale * sums[i]
					product[group] += scale * products[i]
				}
			}
			for i := range inverse {
				total[i], product[i] = total[i]/float64(size), product[i]*inverse[i]/float64(size)
			}
			for plane := row * m.channels; plane < end*m.channels; plane += groupsPerPass {
				last := min(plane+groupsPerPass, end*m.channels)
				for i := range last - plane {
					group, scale := (plane+i)/m.channels-row, float64(gamma[(plane+i)%len(gamma)])
					inverse := inverse[group]
					combination[i] = kernel.Combination{
						Mean: mean[group], A: inverse * scale, B: inverse * inverse * product[group], C: inverse * total[group],
					}
				}
				lo, hi := plane*m.width, last*m.width
				kernel.WideCombinePlanes(dx[lo:hi], dout[lo:hi], x[lo:hi], combination[:last-plane])
			}
		}
	}
}

// normalizeBackwardScale is the gradient by gamma, dgamma[c] = sum over b h w of dout z, where z is
// the normalised x: dout [B C H W], x [B C H W] -> dgamma [C].
type normalizeBackwardScale struct{ normalization normalization }

func (normalizeBackwardScale) Name() string { return "normalization gradient of scale" }

func (g normalizeBackwardScale) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	return tensor.Shape{in[1][1]}, checkEqual(in[0], in[1])
}

func (g normalizeBackwardScale) Lower(l *graph.Lowering) {
	m := g.normalization.layout(l.Shapes[1])
	host := tensor.RowTiles(m.rows, m.groups, m.channels*m.width, graph.Pick(l, scaleProducts[float32], scaleProducts[float64])(g.normalization, m))
	host.Workspace = 8 * m.rows * m.channels
	combine := graph.Pick(l, channelTotals[float32], channelTotals[float64])(m.rows * m.channels)
	host.Phases = append(host.Phases, tensor.Single(combine).Phases...)
	if g.normalization.overRows(m) {
		host = graph.Pick(l, scaleOfRows[float32], scaleOfRows[float64])(g.normalization, m)
	}
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, g.normalization.arguments(l, m, l.Shapes[1])...)
	planes, channels := m.rows*m.channels, l.Shape[0]
	products := tensor.NewWorkspace(tensor.Float64, planes)
	l.EmitCalls("normalize_bwd_scale", []tensor.Call{
		l.Call("normalize_bwd_scale", m.grid(), withOutput(products, arguments)...),
		sumPartial(l, l.Out(), products, planes/channels, channels, 1),
	}, host, arguments...)
}

// scaleProducts fills the workspace with the sum of dout z for each channel of each image.
func scaleProducts[T float32 | float64](n normalization, m groupLayout) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		dout, x, products := tensor.Slice[T](a, 1), tensor.Slice[T](a, 2), tensor.Workspace[float64](a)
		var means, inverses, ofPlanes [groupsPerPass]float64
		size := m.channels * m.width
		for row := lo; row < hi; row += groupsPerPass {
			end := min(row+groupsPerPass, hi)
			mean, inverse := means[:end-row], inverses[:end-row]
			moments(x[row*size:end*size], n, mean, inverse)
			for plane := row * m.channels; plane < end*m.channels; plane += groupsPerPass {
				last := min(plane+groupsPerPass, end*m.channels)
				for i := range last - plane {
					ofPlanes[i] = mean[(plane+i)/m.channels-row]
				}
				some, lo, hi := products[plane:last], plane*m.width, last*m.width
				kernel.WideProductsPlanes(some, dout[lo:hi], x[lo:hi], ofPlanes[:last-plane])
				for i := range some {
					some[i] *= inverse[(plane+i)/m.channels-row]
				}
			}
		}
	}
}
