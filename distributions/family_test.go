package distributions

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// family is a distribution and gonum's version of it.
type family struct {
	name       string
	make       func(v []Value) Distribution
	reference  func(v []float64) distuv.LogProber
	parameters [][]float64
	points     func(v []float64) []float64
	grid       func(t float64, v []float64) (x, slope float64) // all of the support, for t from -400 to 400
}

// realLine, positive and unit are grids.
func realLine(t float64, v []float64) (x, slope float64) {
	t /= 2
	location, scale := v[len(v)-2], v[len(v)-1]
	return location + scale*math.Sinh(t), scale * math.Cosh(t) / 2
}

func positive(t float64, v []float64) (x, slope float64) {
	x = math.Exp(t) / v[len(v)-1]
	return x, x
}

func unit(t float64, _ []float64) (x, slope float64) {
	t /= 12
	x = 1 / (1 + math.Exp(-t))
	return x, x / (1 + math.Exp(t)) / 12
}

// around are points at those distances from a location, in scales.
func around(distances ...float64) func(v []float64) []float64 {
	return func(v []float64) []float64 {
		var x []float64
		for _, d := range distances {
			x = append(x, v[len(v)-2]+d*v[len(v)-1])
		}
		return x
	}
}

// locations are locations and scales, with a further parameter before them.
func locations(before ...float64) [][]float64 {
	var all [][]float64
	for _, v := range [][]float64{{0, 1}, {-1.5, 0.3}, {1e3, 1e-3}, {3, 1e-8}, {-20, 1e8}} {
		if len(before) == 0 {
			all = append(all, v)
		}
		for _, first := range before {
			all = append(all, append([]float64{first}, v...))
		}
	}
	return all
}

// folded is the distribution of |z| for a z whose distribution is symmetric about 0.
type folded struct{ of distuv.LogProber }

func (f folded) LogProb(x float64) float64 { return math.Ln2 + f.of.LogProb(x) }

var families = []family{
	{
		name:       "normal",
		make:       func(v []Value) Distribution { return Normal{Mean: v[0], Std: v[1]} },
		reference:  func(v []float64) distuv.LogProber { return distuv.Normal{Mu: v[0], Sigma: v[1]} },
		parameters: locations(),
		points:     around(-1000, -40, -3, -0.5, 1e-9, 0.7, 2, 8, 50),
		grid:       realLine,
	},
	{
		name:       "laplace",
		make:       func(v []Value) Distribution { return Laplace{Location: v[0], Scale: v[1]} },
		reference:  func(v []float64) distuv.LogProber { return distuv.Laplace{Mu: v[0], Scale: v[1]} },
		parameters: locations(),
		points:     around(-1000, -40, -3, -0.5, 0.1, 0.7, 2, 8, 50),
		grid:       realLine,
	},
	{
		name: "student-t",
		make: func(v []Value) Distribution {
			return StudentT{DoF: v[0], Location: v[1], Scale: v[2]}
		},
		reference: func(v []float64) distuv.LogProber {
			return distuv.StudentsT{Nu: v[0], Mu: v[1], Sigma: v[2]}
		},
		parameters: locations(0.3, 1, 2.5, 9.75, 49.9, 50.1, 1e4),
		points:     around(-1e6, -40, -3, -0.5, 0.1, 0.7, 2, 8, 1e20),
		grid:       realLine,
	},
	{
		name:       "exponential",
		make:       func(v []Value) Distribution { return Exponential{Rate: v[0]} },
		reference:  func(v []float64) distuv.LogProber { return distuv.Exponential{Rate: v[0]} },
		parameters: [][]float64{{1}, {10}, {0.1}, {1e-8}, {1e8}},
		points: func(v []float64) []float64 {
			return []float64{1e-12 / v[0], 0.1 / v[0], 1 / v[0], 7 / v[0], 1000 / v[0]}
		},
		grid: positive,
	},
	{
		name:       "half-normal",
		make:       func(v []Value) Distribution { return HalfNormal{Std: v[0]} },
		reference:  func(v []float64) distuv.LogProber { return folded{distuv.Normal{Sigma: v[0]}} },
		parameters: [][]float64{{1}, {10}, {0.1}, {1e-8}, {1e8}},
		points: func(v []float64) []float64 {
			return []float64{1e-12 * v[0], 0.1 * v[0], 0.7 * v[0], 7 * v[0], 1000 * v[0]}
		},
		grid: positive,
	},
	{
		name:       "half-student-t",
		make:       func(v []Value) Distribution { return HalfStudentT{DoF: v[0], Scale: v[1]} },
		reference:  func(v []float64) distuv.LogProber { return folded{distuv.StudentsT{Nu: v[0], Sigma: v[1]}} },
		parameters: [][]float64{{1, 1}, {1, 25}, {0.3, 0.01}, {9.75, 1e-6}, {1e4, 1e5}},
		points: func(v []float64) []float64 {
			return []float64{1e-12 * v[1], 0.1 * v[1], 1 * v[1], 7 * v[1], 1000 * v[1]}
		},
		grid: positive,
	},
	{
		name: "gamma",
		make: func(v []Value) Distribution { return Gamma{Shape: v[0], Rate: v[1]} },
		reference: func(v []float64) distuv.LogProber {
			return distuv.Gamma{Alpha: v[0], Beta: v[1]}
		},
		parameters: [][]float64{{1, 1}, {0.2, 3}, {2.5, 1e-6}, {40, 0.1}, {300, 1e5}, {0.5, 0.5}},
		points: func(v []float64) []float64 {
			mean := v[0] / v[1]
			return []float64{1e-12 * mean, 0.01 * mean, 0.3 * mean, mean, 2 * mean, 30 * mean}
		},
		grid: positive,
	},
	{
		name: "beta",
		make: func(v []Value) Distribution { return Beta{A: v[0], B: v[1]} },
		reference: func(v []float64) distuv.LogProber {
			return distuv.Beta{Alpha: v[0], Beta: v[1]}
		},
		parameters: [][]float64{{1, 1}, {0.7, 0.9}, {2, 5}, {1, 3}, {4, 1}, {30, 200}, {1000, 1000}},
		points: func([]float64) []float64 {
			return []float64{1e-12, 1e-3, 0.2, 0.5, 0.8, 0.999}
		},
		grid: unit,
	},
}

// columns are the points of all parameters below each other, and the parameters next to them.
func (f family) columns() [][]float64 {
	columns := make([][]float64, 1+len(f.parameters[0]))
	for _, v := range f.parameters {
		for _, x := range f.points(v) {
			for i, entry := range append([]float64{x}, v...) {
				columns[i] = append(columns[i], entry)
			}
		}
	}
	return columns
}

// program has x and the parameters as inputs [n].
func (f family) program(t *testing.T, dtype tensor.DType, n int) *program {
	shapes := make([]tensor.Shape, 1+len(f.parameters[0]))
	for i := range shapes {
		shapes[i] = tensor.Shape{n}
	}
	return newProgram(t, dtype, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return f.make(nodes(in[1:])).LogProb(b, in[0])
	})
}

// terms is the size of the terms of a log density. Rounding errors are measured relative to it.
func (f family) terms(columns [][]float64) func(i int) float64 {
	return func(i int) float64 {
		size := 1.0
		for _, column := range columns[1:] {
			v := math.Abs(column[i])
			g, _ := math.Lgamma(v)
			if f.name == "normal" || f.name == "laplace" || f.name == "exponential" || f.name == "half-normal" {
				g = 0
			}
			size += math.Abs(math.Log(v+1e-300)) + math.Abs(g)
			if f.name == "gamma" {
				size += columns[1][i] * math.Abs(math.Log(columns[2][i])+math.Log(columns[0][i]))
			}
		}
		return size
	}
}

// located reports whether the last two parameters are a location and a scale.
func (f family) located() bool {
	return f.name == "normal" || f.name == "laplace" || f.name == "student-t"
}

// steps are small compared with the scale on which a density varies: its scale, or the distance
// from the end of a range.
func (f family) steps(columns [][]float64, i int) []float64 {
	steps := make([]float64, len(columns[i]))
	last := len(columns) - 1
	for j := range steps {
		width := columns[i][j]
		switch {
		case f.located() && (i == 0 || i == last-1):
			width = columns[last][j]
		case f.name == "beta" && i == 0:
			width = min(width, 1-width)
		}
		steps[j] = 0x1p-8 * width
	}
	return steps
}
