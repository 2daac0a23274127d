package sumexp

import (
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Groups computes the exponentials of rows of numbers z, a few rows at a time:
//
//	for g := sumexp.Of(a, z, width); g.Next(); {
//		for i := range g.Count {
//			... // row g.First + i of z
//		}
//	}
//
// ln sum exp(z) of a row is Largest + ln Sum.
type Groups[T float32 | float64] struct {
	First, Count int                        // rows of this group
	Largest      [kernel.SumExpRows]float64 // the largest z of each row
	Sum          [kernel.SumExpRows]float64 // of exp(z - Largest)

	z           []T
	width       int
	scratch     []float64 // exp(z - Largest)
	row, column int       // strides of scratch
}

// narrow is the largest width of rows that are computed side by side: a vector has the elements of
// column k of all rows. In wider rows a vector has several columns of one row.
const narrow = 128

// Together returns the number of rows of a group, except for the last one, which may have fewer.
func Together(width int) int {
	if width > narrow {
		return 1
	}
	return kernel.SumExpRows
}

// Kernel returns a host kernel whose run calls Of. Each run gets whole groups, with some 512
// exponentials.
func Kernel(rows, width int, run func(a *tensor.Args, lo, hi int)) tensor.HostKernel {
	together := Together(width)
	host := tensor.Rows((rows+together-1)/together, 16*together*width, func(a *tensor.Args, lo, hi int) {
		run(a, lo*together, min(hi*together, rows))
	})
	host.Private = 8 * together * width
	return host
}

// Of starts before the first group of z, which has rows of the given width. a are the arguments of
// a Kernel.
func Of[T float32 | float64](a *tensor.Args, z []T, width int) Groups[T] {
	return Groups[T]{z: z, width: width, scratch: tensor.Private[float64](a)}
}

// Exponential returns exp(z[k] - Largest) of row i of the group.
func (g *Groups[T]) Exponential(i, k int) float64 { return g.scratch[i*g.row+k*g.column] }

// Normalize sets p to the softmax of row i of the group.
func (g *Groups[T]) Normalize(i int, p []T) {
	inverse := 1 / g.Sum[i]
	if g.column > 1 {
		for k := range p {
			p[k] = T(g.Exponential(i, k) * inverse)
		}
		return
	}
	for k, v := range g.scratch[i*g.row:][:len(p)] {
		p[k] = T(v * inverse)
	}
}

// Next computes the next group, and reports whether there is one.
func (g *Groups[T]) Next() bool {
	g.First += g.Count
	z := g.z[g.First*g.width:]
	g.Count = min(Together(g.width), len(z)/g.width)
	if g.Count == kernel.SumExpRows {
		g.row, g.column = 1, kernel.SumExpRows
		kernel.SumExp(z, g.width, g.scratch, &g.Largest, &g.Sum)
		return true
	}
	g.row, g.column = g.width, 1
	g.alongRows(z[:g.Count*g.width])
	return g.Count > 0
}

// alongRows computes the exponentials of one row after another.
func (g *Groups[T]) alongRows(z []T) {
	e := g.scratch[:len(z)]
	for i := range g.Count {
		row, shifted := z[i*g.width:][:g.width], e[i*g.width:][:g.width]
		top := float64(largest(row))
		g.Largest[i] = top
		for k, v := range row {
			shifted[k] = float64(v) - top
		}
	}
	kernel.WideExp(e)
	for i := range g.Count {
		g.Sum[i] = sum(e[i*g.width:][:g.width])
	}
}

// largest returns the largest element, or NaN if one is NaN. Like sum, it has four independent
// results in flight, since an operation takes several cycles.
func largest[T float32 | float64](row []T) T {
	a, b, c, d := row[0], row[0], row[0], row[0]
	for ; len(row) >= 4; row = row[4:] {
		a, b, c, d = max(a, row[0]), max(b, row[1]), max(c, row[2]), max(d, row[3])
	}
	for _, v := range row {
		a = max(a, v)
	}
	return max(a, b, c, d)
}

func sum(row []float64) float64 {
	var a, b, c, d float64
	for ; len(row) >= 4; row = row[4:] {
		a, b, c, d = a+row[0], b+row[1], c+row[2], d+row[3]
	}
	for _, v := range row {
		a += v
	}
	return a + b + (c + d)
}
