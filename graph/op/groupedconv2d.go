package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// GroupedConv2D is Conv2D within groups of channels: filters k of a group see only the channels of
// that group,
//
//	y[b k p q] = sum over c r s of
//	  w[k c r s] x[b g C/Groups+c p*Stride+r*Dilation-Padding q*Stride+s*Dilation-Padding]
//
// with g = floor(k Groups / K): x [B C H W], w [K C/Groups R S] -> y [B K P Q]. Groups must divide
// C and K. As many groups as channels make a depthwise convolution (Howard et al., MobileNets,
// 2017); it is for these that the loops are written, which do not share operands between filters.
type GroupedConv2D struct {
	Stride, Padding, Dilation [2]int
	Groups                    int
}

// Name implements graph.Op.
func (GroupedConv2D) Name() string { return "grouped conv2d" }

// Shape implements graph.Op.
func (g GroupedConv2D) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	channels, filters := in[0][1], in[1][0]
	if g.Groups < 1 || channels%g.Groups != 0 || filters%g.Groups != 0 {
		return nil, errors.Errorf("groups must be at least 1 and divide %d channels and %d filters, got %d", channels, filters, g.Groups)
	}
	if in[1][1] != channels/g.Groups {
		return nil, errors.Errorf("filter must have %d channels, those of a group, got %d", channels/g.Groups, in[1][1])
	}
	k := g.sizes(in[0], in[1]).Conv2D
	if err := k.Validate(); err != nil {
		return nil, err
	}
	return tensor.Shape{k.B, filters, k.P(), k.Q()}, nil
}

// groupedSizes has the sizes of one group's convolution, and the number of groups. Bodies of the
// host's loops are its methods.
type groupedSizes struct {
	kernel.Conv2D
	groups int
}

func (g GroupedConv2D) sizes(x, w tensor.Shape) groupedSizes {
	return groupedSizes{kernel.Conv2D{
		B: x[0], C: x[1] / g.Groups, H: x[2], W: x[3], K: w[0] / g.Groups, R: w[2], S: w[3],
		StrideH: g.Stride[0], StrideW: g.Stride[1], PadH: g.Padding[0], PadW: g.Padding[1],
		DilationH: g.Dilation[0], DilationW: g.Dilation[1],
	}, g.Groups}
}

// arguments are those of a group's convolution, as for Conv2D, and the number of groups.
func (s groupedSizes) arguments() []tensor.Argument {
	return append(convSizes(s.Conv2D), tensor.Int(s.groups))
}

// Lower implements graph.Op.
func (g GroupedConv2D) Lower(l *graph.Lowering) {
	s := g.sizes(l.Shapes[0], l.Shapes[1])
	run := graph.Pick(l, groupedForward[float32](s), groupedForward[float64](s))
	host := tensor.Rows(s.B*s.groups*s.K, s.P()*s.Q()*s.C*s.R*s.S, run)
	l.Emit("grouped_conv2d_fwd", tensor.Threads(l.Shape.Elements()), host, append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, s.arguments()...)...)
}

// Gradients implements graph.Differentiable.
func (g GroupedConv2D) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	x, w := graph.ShapeOf(in[0]), graph.ShapeOf(in[1])
	return []*graph.Node{
		b.Apply(groupedConv2DBackwardInput{g, x[2], x[3]}, dout, in[1]),
		b.Apply(groupedConv2DBackwardFilter{g, w[2], w[3]}, dout, in[0]),
	}
}

// groupedConv2DBackwardInput is the gradient by the input: dout [B K P Q], w [K C/Groups R S] -> dx
// [B C H W]. The image's size is an attribute, since a stride makes several sizes of x have the
// same y.
type groupedConv2DBackwardInput struct {
	conv          GroupedConv2D
	height, width int
}

func (groupedConv2DBackwardInput) Name() string { return "grouped conv2d gradient of input" }

func (g groupedConv2DBackwardInput) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	x := tensor.Shape{in[0][0], in[1][1] * g.conv.Groups, g.height, g.width}
	y, err := g.conv.Shape([]tensor.Shape{x, in[1]})
	if err != nil {
		return nil, err
	}
	return x, checkEqual(y, in[0])
}

func (g groupedConv2DBackwardInput) Lower(l *graph.Lowering) {
	s := g.conv.sizes(l.Shape, l.Shapes[1])
	run := graph.Pick(l, groupedBackwardInput[float32](s), groupedBackwardInput[float64](s))
	host := tensor.Rows(s.B*s.groups*s.C, s.P()*s.Q()*s.K*s.R*s.S, run)
	l.Emit("grouped_conv2d_bwd_input", tensor.Threads(l.Shape.Elements()), host,
		append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, s.arguments()...)...)
}

// groupedConv2DBackwardFilter is the gradient by the filter: dout [B K P Q], x [B C H W] -> dw [K
// C/Groups R S].
type groupedConv2DBackwardFilter struct {
	conv          GroupedConv2D
	height, width int
}

func (groupedConv2DBackwardFilter) Name() string { return "grouped conv2d gradient of filter" }

func (g groupedConv2DBackwardFilter) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4, 4); err != nil {
		return nil, err
	}
	if g.conv.Groups < 1 {
		return nil, errors.Errorf("groups must be at least 1, got %d", g.conv.Groups)
	}
	w := tensor.Shape{in[0][1], in[1][1] / g.conv.Groups, g.height, g.width}
	y, err := g.conv.Shape([]tensor.Shape{in[1], w})
	if err != nil {
		return nil, err
	}
	return w, checkEqual(y, in[0])
}

func (g groupedConv2DBackwardFilter) Lower(l *graph.Lowering) {
	s := g.conv.sizes(l.Shapes[1], l.Shape)
	run := graph.Pick(l, groupedBackwardFilter[float32](s), groupedBackwardFilter[float64](s))
	host := tensor.Rows(s.groups*s.K*s.C, s.B*s.P()*s.Q()*s.R*s.S, run)
	l.Emit("grouped_conv2d_bwd_filter", tensor.Blocks{Count: l.Shape.Elements(), Threads: SumThreads}, host,
		append([]tensor.Argument{l.Out(), l.In(0), l.In(1)}, s.arguments()...)...)
}

// taps calls use for each row p of the output and each tap (r, s), with the row of the input that
// the tap reads, its first column there, and the range of columns q of the output whose taps are
// inside the input. Rows outside are left out.
func (s groupedSizes) taps(use func(p, r, tap, row, left, first, last int)) {
	for r := range s.R {
		for tap := range s.S {
			left := tap*s.DilationW - s.PadW
			first, last := 0, s.Q()
			for first < last && first*s.StrideW+left < 0 {
				first++
			}
			for first < last && (last-1)*s.StrideW+left >= s.W {
				last--
			}
			for p := range s.P() {
				if row := p*s.StrideH + r*s.DilationH - s.PadH; row >= 0 && row < s.H {
					use(p, r, tap, row, left, first, last)
				}
			}
		}
	}
}

// groupedForward computes planes of y, one for each example and filter.
func groupedForward[T float32 | float64](s groupedSizes) func(a *tensor.Args, lo, hi int) {
	filters, P, Q := s.groups*s.K, s.P(), s.Q()
	return func(a *tensor.Args, lo, hi int) {
		y, x, w := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for plane := lo; plane < hi; plane++ {
			k, b := plane%filters, plane/filters
			to := y[plane*P*Q:][:P*Q]
			clear(to)
			for c := range s.C {
				from := x[((b*s.groups+k/s.K)*s.C+c)*s.H*s.W:][:s.H*s.W]
				taps := w[(k*s.C+c)*s.R*s.S:][:s.R*s.S]
				s.taps(func(p, r, tap, row, left, first, last int) {
					factor, line, pixels := taps[r*s.S+tap], to[p*Q:][:Q], from[row*s.W:][:s.W]
					if s.StrideW == 1 {
						pixels = pixels[first+left:][:last-first]
						for i, v := range pixels {
							line[first+i] += factor * v
						}
						return
					}
					for q := first; q < last; q++ {
						line[q] += factor * pixels[q*s.StrideW+left]
					}
				})
			}
		}
	}
}

// groupedBackwardInput computes planes of dx, one for each example and channel.
func groupedBackwardInput[T float32 | float64](s groupedSizes) func(a *tensor.Args, lo, hi int) {
	channels, P, Q := s.groups*s.C, s.P(), s.Q()
	return func(a *tensor.Args, lo, hi int) {
		dx, dout, w := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for plane := lo; plane < hi; plane++ {
			channel, b := plane%channels, plane/channels
			group, c := channel/s.C, channel%s.C
			to := dx[plane*s.H*s.W:][:s.H*s.W]
			clear(to)
			for k := group * s.K; k < (group+1)*s.K; k++ {
				from := dout[(b*s.groups*s.K+k)*P*Q:][:P*Q]
				taps := w[(k*s.C+c)*s.R*s.S:][:s.R*s.S]
				s.taps(func(p, r, tap, row, left, first, last int) {
					factor, line, pixels := taps[r*s.S+tap], from[p*Q:][:Q], to[row*s.W:][:s.W]
					for q := first; q < last; q++ {
						pixels[q*s.StrideW+left] += factor * line[q]
					}
				})
			}
		}
	}
}

// groupedBackwardFilter computes the taps of a filter for one channel, in float64.
func groupedBackwardFilter[T float32 | float64](s groupedSizes) func(a *tensor.Args, lo, hi int) {
	P, Q := s.P(), s.Q()
	return func(a *tensor.Args, lo, hi int) {
		dw, dout, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		for at := lo; at < hi; at++ {
			c, k := at%s.C, at/s.C
			for i := range s.R * s.S {
				r, tap := i/s.S, i%s.S
				total := 0.0
				for b := range s.B {
					from := dout[(b*s.groups*s.K+k)*P*Q:][:P*Q]
					image := x[((b*s.groups+k/s.K)*s.C+c)*s.H*s.W:][:s.H*s.W]
					total += correlation(s, from, image, r, tap)
				}
				dw[at*s.R*s.S+i] = T(total)
			}
		}
	}
}

// correlation returns the sum of an output's gradient times the pixels that the tap (r, tap) reads.
func correlation[T float32 | float64](s groupedSizes, dout, image []T, r, tap int) (total float64) {
	top, left, Q := r*s.DilationH-s.PadH, tap*s.DilationW-s.PadW, s.Q()
	for p := range s.P() {
		row := p*s.StrideH + top
		if row < 0 || row >= s.H {
			continue
		}
		line, pixels := dout[p*Q:][:Q], image[row*s.W:][:s.W]
		for q, v := range line {
			if at := q*s.StrideW + left; at >= 0 && at < s.W {
				total += float64(v) * float64(pixels[at])
			}
		}
	}
	return total
}
