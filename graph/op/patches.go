package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Patches are the windows of x that a convolution with a kernel of Height x Width reads, im2col:
//
//	y[b (c r s) p q] = x[b c p*Stride+r*Dilation-Padding q*Stride+s*Dilation-Padding]
//
// with zeros outside x: x [B C H W] -> y [B C*Height*Width P Q]. Conv has the attributes of the
// convolution, which multiplies its weights, as a matrix, by y. Patches is for statistics of a
// layer's inputs, such as the factors of K-FAC, and has no gradient; Conv2D does not use it.
type Patches struct {
	Conv          Conv2D
	Height, Width int
}

// Name implements graph.Op.
func (Patches) Name() string { return "patches" }

// Shape implements graph.Op.
func (p Patches) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, 4); err != nil {
		return nil, err
	}
	if p.Height < 1 || p.Width < 1 {
		return nil, errors.Errorf("kernel must be at least 1 x 1, got %d x %d", p.Height, p.Width)
	}
	y, err := p.Conv.Shape([]tensor.Shape{in[0], {1, in[0][1], p.Height, p.Width}})
	if err != nil {
		return nil, err
	}
	return tensor.Shape{in[0][0], in[0][1] * p.Height * p.Width, y[2], y[3]}, nil
}

// Lower implements graph.Op.
func (p Patches) Lower(l *graph.Lowering) {
	k := p.Conv.kernel(l.Shapes[0], tensor.Shape{1, l.Shapes[0][1], p.Height, p.Width})
	run := graph.Pick(l, patches[float32](p, l.Shapes[0], l.Shape), patches[float64](p, l.Shapes[0], l.Shape))
	host := tensor.Rows(l.Shape[0]*l.Shape[1], l.Shape[2]*l.Shape[3], run)
	l.Emit("patches_fwd", tensor.Threads(l.Shape.Elements()), host, append([]tensor.Argument{l.Out(), l.In(0)}, convSizes(k)...)...)
}

// patches fills planes of y, one for each example, channel and position in the kernel.
func patches[T float32 | float64](o Patches, x, y tensor.Shape) func(a *tensor.Args, lo, hi int) {
	c, height, width := o.Conv, x[2], x[3]
	return func(a *tensor.Args, lo, hi int) {
		to, from := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for plane := lo; plane < hi; plane++ {
			s, r, channel := plane%o.Width, plane/o.Width%o.Height, plane/(o.Width*o.Height)
			top, left := r*c.Dilation[0]-c.Padding[0], s*c.Dilation[1]-c.Padding[1]
			// Positions first to last-1 of a line of y read within x.
			first, last := 0, y[3]
			for first < last && first*c.Stride[1]+left < 0 {
				first++
			}
			for first < last && (last-1)*c.Stride[1]+left >= width {
				last--
			}
			for p := range y[2] {
				line := to[(plane*y[2]+p)*y[3]:][:y[3]]
				row := p*c.Stride[0] + top
				if row < 0 || row >= height {
					clear(line)
					continue
				}
				pixels := from[(channel*height+row)*width:][:width]
				clear(line[:first])
				clear(line[last:])
				for q := first; q < last; q++ {
					line[q] = pixels[q*c.Stride[1]+left]
				}
			}
		}
	}
}
