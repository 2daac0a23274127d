package optest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// gathered returns y [ys] with y[i] = x[from(index of i)].
func gathered(x []float64, xs, ys tensor.Shape, from func(index []int) []int) []float64 {
	y := make([]float64, ys.Elements())
	for i := range y {
		index, rest := make([]int, len(ys)), i
		for axis := len(ys) - 1; axis >= 0; axis-- {
			index[axis] = rest % ys[axis]
			rest /= ys[axis]
		}
		at := 0
		for axis, k := range from(index) {
			at = at*xs[axis] + k
		}
		y[i] = x[at]
	}
	return y
}

func axesCases() []Case {
	var cases []Case
	for _, s := range []struct {
		shape tensor.Shape
		axes  []int
	}{
		{tensor.Shape{}, nil}, {tensor.Shape{31}, []int{0}}, {tensor.Shape{31, 33}, []int{1, 0}}, {tensor.Shape{3, 257, 5}, []int{2, 0, 1}},
		{tensor.Shape{5, 7, 3, 9}, []int{0, 2, 3, 1}}, {tensor.Shape{2, 3, 1, 4, 2, 5}, []int{5, 1, 3, 0, 4, 2}},
	} {
		y := make(tensor.Shape, len(s.shape))
		for i, axis := range s.axes {
			y[i] = s.shape[axis]
		}
		cases = append(cases, Case{
			Name: fmt.Sprint("transpose ", s.shape, " by ", s.axes), Op: array.TransposeBy(s.axes...), Terms: 1,
			Inputs: []Input{Float(Normal, s.shape...)},
			Naive: func(in [][]float64) []float64 {
				return gathered(in[0], s.shape, y, func(index []int) []int {
					from := make([]int, len(index))
					for i, axis := range s.axes {
						from[axis] = index[i]
					}
					return from
				})
			},
		})
	}
	for _, s := range []struct {
		shape tensor.Shape
		slice array.Slice
	}{
		{tensor.Shape{257}, array.Slice{Start: 3, Step: 7, Count: 31}},
		{tensor.Shape{31, 33}, array.Slice{Axis: 1, Step: 1, Count: 33}},
		{tensor.Shape{5, 31, 3}, array.Slice{Axis: 1, Start: 30, Step: 1, Count: 1}},
		{tensor.Shape{2, 3, 1, 7, 2, 5}, array.Slice{Axis: 3, Start: 1, Step: 2, Count: 3}},
	} {
		taken := append(tensor.Shape{}, s.shape...)
		taken[s.slice.Axis] = s.slice.Count
		place := func(index []int) []int {
			from := append([]int{}, index...)
			from[s.slice.Axis] = s.slice.Start + index[s.slice.Axis]*s.slice.Step
			return from
		}
		ordinals := make([]float64, s.shape.Elements())
		for i := range ordinals {
			ordinals[i] = float64(i)
		}
		cases = append(cases, Case{
			Name: fmt.Sprint("slice ", s.shape, " ", s.slice), Op: s.slice, Terms: 1, Inputs: []Input{Float(Normal, s.shape...)},
			Naive: func(in [][]float64) []float64 { return gathered(in[0], s.shape, taken, place) },
		}, Case{
			Name: fmt.Sprint("unslice ", s.shape, " ", s.slice), Op: array.Unslice{Slice: s.slice, Extent: s.shape[s.slice.Axis]}, Terms: 1,
			Inputs: []Input{Float(Normal, taken...)},
			Naive: func(in [][]float64) []float64 {
				y := make([]float64, len(ordinals))
				for i, at := range gathered(ordinals, s.shape, taken, place) {
					y[int(at)] = in[0][i]
				}
				return y
			},
		})
	}
	for _, s := range []struct {
		shape  tensor.Shape // the extent on the axis does not matter
		axis   int
		counts []int
	}{
		{tensor.Shape{1}, 0, []int{3, 31}},
		{tensor.Shape{31, 1}, 1, []int{33}},
		{tensor.Shape{5, 1, 3}, 1, []int{1, 30, 2}},
		{tensor.Shape{2, 3, 1, 7, 2, 5}, 2, []int{4, 1, 2, 1}},
		{tensor.Shape{31, 33, 1}, 2, []int{1, 1}}, // many lines
	} {
		c := Case{Name: fmt.Sprint("concat ", s.counts, " along axis ", s.axis, " of ", s.shape), Op: array.Concat{Axis: s.axis}, Terms: 1}
		y := append(tensor.Shape{}, s.shape...)
		y[s.axis] = 0
		for _, count := range s.counts {
			x := append(tensor.Shape{}, s.shape...)
			x[s.axis] = count
			y[s.axis] += count
			c.Inputs = append(c.Inputs, Float(Normal, x...))
		}
		c.Naive = func(in [][]float64) []float64 {
			var all []float64
			before := s.shape[:s.axis].Elements()
			for line := range before {
				for _, x := range in {
					width := len(x) / before
					all = append(all, x[line*width:][:width]...)
				}
			}
			return all
		}
		cases = append(cases, c)
	}
	for _, s := range []struct {
		shape       tensor.Shape
		axis, times int
	}{{tensor.Shape{1}, 0, 31}, {tensor.Shape{31, 33}, 1, 3}, {tensor.Shape{3, 5, 7, 9}, 2, 2}, {tensor.Shape{3, 1, 4, 3, 2, 5}, 0, 1}} {
		y := append(tensor.Shape{}, s.shape...)
		y[s.axis] *= s.times
		cases = append(cases, Case{
			Name: fmt.Sprint("repeat ", s.shape, " ", s.times, " times along ", s.axis), Op: array.Repeat{Axis: s.axis, Times: s.times}, Terms: s.times,
			Inputs: []Input{Float(Normal, s.shape...)},
			Naive: func(in [][]float64) []float64 {
				return gathered(in[0], s.shape, y, func(index []int) []int {
					from := append([]int{}, index...)
					from[s.axis] /= s.times
					return from
				})
			},
		})
	}
	return append(append(cases, maximumCases()...), largerCases()...)
}

func maximumCases() []Case {
	var cases []Case
	for _, size := range [][2]int{{1, 1}, {33, 31}, {257, 10}, {3, 1031}} {
		width := size[1]
		naive := func(in [][]float64) []float64 {
			y := make([]float64, size[0])
			for row := range y {
				y[row] = math.Inf(-1)
				for _, v := range in[0][row*width : (row+1)*width] {
					y[row] = math.Max(y[row], v)
				}
			}
			return y
		}
		cases = append(cases, Case{
			Name: fmt.Sprint("row maximum of ties ", size), Op: array.RowMaximum{}, Inputs: []Input{Float(Ties, size[:]...)}, Naive: naive, Terms: 1,
			Gradient: func(in [][]float64, dout []float64) [][]float64 {
				dx, y := make([]float64, len(in[0])), naive(in)
				for i, v := range in[0] {
					if v == y[i/width] {
						dx[i] = dout[i/width]
					}
				}
				return [][]float64{dx}
			},
		}, Case{
			Name: fmt.Sprint("row maximum ", size), Op: array.RowMaximum{}, Inputs: []Input{Float(Distinct, size[:]...)},
			Naive: naive, Terms: 1, NoGradient: true,
		})
	}
	return cases
}

func largerCases() []Case {
	var cases []Case
	infinite := func(unordered bool) Fill {
		return func(r *rand.Rand, values []float64) {
			choice := []float64{-1, 0, 2, math.Inf(-1), math.Inf(1), math.NaN()}
			for i := range values {
				if values[i] = choice[r.IntN(5)]; unordered {
					values[i] = choice[r.IntN(6)]
				}
			}
		}
	}
	for _, c := range []array.Extremum{{}, {Minimum: true}} {
		second := func(a, b float64) bool { return !c.Minimum && b > a || c.Minimum && b < a }
		row := func(name string, a, b Input) Case {
			return Case{
				Name: fmt.Sprint(c.Name(), " ", name, " ", a.Shape), Op: c, Inputs: []Input{a, b}, Terms: 1,
				Naive: func(in [][]float64) []float64 {
					y := append([]float64(nil), in[0]...)
					for i, v := range in[1] {
						if second(y[i], v) {
							y[i] = v
						}
					}
					return y
				},
				Gradient: func(in [][]float64, dout []float64) [][]float64 {
					da, db := make([]float64, len(dout)), make([]float64, len(dout))
					for i, v := range dout {
						if second(in[0][i], in[1][i]) {
							db[i] = v
						} else {
							da[i] = v
						}
					}
					return [][]float64{da, db}
				},
			}
		}
		for _, shape := range []tensor.Shape{{}, {9001}, {31, 3, 5}} {
			cases = append(cases, row("of ties", Float(Ties, shape...), Float(Ties, shape...)))
		}
		cases = append(cases, row("of infinities", Float(infinite(false), 257), Float(infinite(true), 257)))
	}
	return cases
}

func comparisonCases() []Case {
	var cases []Case
	relations := []struct {
		op    op.Compare
		holds func(a, b float64) bool
	}{
		{op.Compare{Less: true}, func(a, b float64) bool { return a < b }},
		{op.Compare{Less: true, Equal: true}, func(a, b float64) bool { return a <= b }},
		{op.Compare{Equal: true}, func(a, b float64) bool { return a == b }},
	}
	for _, s := range []struct{ a, b, y tensor.Shape }{
		{tensor.Shape{9001}, tensor.Shape{9001}, tensor.Shape{9001}},
		{tensor.Shape{31, 257}, tensor.Shape{31, 1}, tensor.Shape{31, 257}},
	} {
		for _, r := range relations {
			cases = append(cases, Case{
				Name: fmt.Sprint("compare ", r.op, " ", s.a, " ", s.b), Op: r.op, Terms: 1, NoGradient: true,
				Inputs: []Input{Float(Ties, s.a...), Float(Ties, s.b...)},
				Naive: func(in [][]float64) []float64 {
					y := make([]float64, s.y.Elements())
					for i := range y {
						if r.holds(in[0][place(i, s.y, s.a)], in[1][place(i, s.y, s.b)]) {
							y[i] = 1
						}
					}
					return y
				},
			})
		}
		cases = append(cases, Case{
			Name: fmt.Sprint("power ", s.a, " ", s.b), Op: op.Power{}, Terms: s.y.Elements() / s.b.Elements(), Loosen: 8, Reason: exponent,
			Inputs: []Input{Float(Positive, s.a...), Float(Normal, s.b...)},
			Naive: func(in [][]float64) []float64 {
				y := make([]float64, s.y.Elements())
				for i := range y {
					y[i] = math.Pow(in[0][place(i, s.y, s.a)], in[1][place(i, s.y, s.b)])
				}
				return y
			},
		})
	}
	whole := func(exponent float64) Case {
		return Case{
			Name: fmt.Sprint("power of negative numbers by ", exponent), Op: op.Power{}, Terms: 1, NoGradient: true, Loosen: 2, Reason: "e^(b ln a) on a GPU",
			Inputs: []Input{Float(Normal, 257), Float(func(_ *rand.Rand, v []float64) { v[0] = exponent }, 1)},
			Naive: func(in [][]float64) []float64 {
				y := make([]float64, len(in[0]))
				for i, v := range in[0] {
					y[i] = math.Pow(v, exponent)
				}
				return y
			},
		}
	}
	return append(cases, whole(3), whole(-2), whole(0))
}

func batchMatrixCases() []Case {
	var cases []Case
	for _, s := range [][4]int{{1, 1, 1, 1}, {3, 5, 31, 7}, {33, 4, 3, 9}} {
		pairs, rows, depth, columns := s[0], s[1], s[2], s[3]
		for _, transposed := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			a, b := tensor.Shape{pairs, rows, depth}, tensor.Shape{pairs, depth, columns}
			if transposed[0] {
				a = tensor.Shape{pairs, depth, rows}
			}
			if transposed[1] {
				b = tensor.Shape{pairs, columns, depth}
			}
			cases = append(cases, Case{
				Name: fmt.Sprint("batch matmul ", s, " ", transposed), Op: op.BatchMatMul{TransposeA: transposed[0], TransposeB: transposed[1]},
				Inputs: []Input{Float(Normal, a...), Float(Normal, b...)}, Terms: max(depth, rows, columns),
				Naive: func(in [][]float64) []float64 {
					c := make([]float64, pairs*rows*columns)
					for i := range c {
						pair, row, column := i/(rows*columns), i/columns%rows, i%columns
						for k := range depth {
							atA, atB := pair*rows*depth+row*depth+k, pair*depth*columns+k*columns+column
							if transposed[0] {
								atA = pair*rows*depth + k*rows + row
							}
							if transposed[1] {
								atB = pair*depth*columns + column*depth + k
							}
							c[i] += in[0][atA] * in[1][atB]
						}
					}
					return c
				},
			})
		}
	}
	return cases
}
