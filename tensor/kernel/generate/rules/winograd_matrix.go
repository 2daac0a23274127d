package rules

import "math"

// algorithms lists package kernel's algorithms: cookToom43, cookToom45 and cookToom75.
var algorithms = []algorithm{
	{4, 3, []float64{0, 0.6875, -0.6875, 1.4375, -1.4375}, nil},
	{4, 5, []float64{0, 0.75, -0.75, 1.3125, -1.3125}, []float64{1}},
	{7, 5, []float64{0.5, -0.5, 0.9375, -0.9375, 1.375, -1.375}, []float64{0.8125, 1.125}},
}

// algorithm is an algorithm of Cook and Toom.
type algorithm struct {
	patch, taps int
	points      []float64 // real points, without infinity; a point and its negative are adjacent
	imaginary   []float64 // each stands for itself and its conjugate
}

// groups returns the rows of matrices that share arithmetic: points of both signs, and the three
// rows of each imaginary point, which come last.
func (a algorithm) groups() (groups [][]int) {
	for i := 0; i < len(a.points); i++ {
		if i+1 < len(a.points) && a.points[i] == -a.points[i+1] {
			groups = append(groups, []int{i, i + 1})
			i++
		} else {
			groups = append(groups, []int{i})
		}
	}
	n := len(a.points)
	groups = append(groups, []int{n})
	for range a.imaginary {
		groups = append(groups, []int{n + 1, n + 2, n + 3})
		n += 3
	}
	return groups
}

// matrix is rows of coefficients.
type matrix [][]float64

func (m matrix) transposed() matrix {
	t := make(matrix, len(m[0]))
	for i := range t {
		for _, row := range m {
			t[i] = append(t[i], row[i])
		}
	}
	return t
}

// matrices returns B', G and A, as package kernel derives them.
func (a algorithm) matrices() (input, filter, spread matrix) {
	extent := a.patch + a.taps - 1
	for i, point := range a.points {
		rest := modulus(without(a.points, i), a.imaginary)
		scale := 0.0
		for j := len(rest) - 1; j >= 0; j-- {
			scale = scale*point + rest[j]
		}
		input = append(input, shifted(rest, 0, extent, 1))
		filter = append(filter, powers(point, a.taps, scale))
		spread = append(spread, powers(point, a.patch, 1))
	}
	input = append(input, modulus(a.points, a.imaginary))
	filter = append(filter, powers(math.Inf(1), a.taps, 1))
	spread = append(spread, powers(math.Inf(1), a.patch, 1))
	for i, t := range a.imaginary {
		rest := modulus(a.points, without(a.imaginary, i))
		constant, linear := residues(len(rest), t, 1)
		scale := 0.0
		first, second := shifted(rest, 0, extent, 1), shifted(rest, 1, extent, 1/t)
		for j, v := range rest {
			scale += v * (constant[j] + linear[j])
			if v*linear[j] != 0 {
				first, second = shifted(rest, 1, extent, -1/t), shifted(rest, 0, extent, 1)
			}
		}
		g0, g1 := residues(a.taps, t, scale)
		y0, y1 := residues(a.patch, t, 1)
		input = append(input, combined(second, first, -1), first, second)
		filter = append(filter, g1, combined(g0, g1, 1), combined(g0, g1, -1))
		spread = append(spread, combined(y0, y1, 1), y0, y1)
	}
	return input, filter, spread
}

func without(points []float64, i int) []float64 {
	return append(append([]float64(nil), points[:i]...), points[i+1:]...)
}

// combined returns x + sign y.
func combined(x, y []float64, sign float64) []float64 {
	z := make([]float64, len(x))
	for i := range z {
		z[i] = x[i] + sign*y[i]
	}
	return z
}

// residues returns the rows that give the remainder of a polynomial modulo x^2+t^2, in x/t, divided
// by a scale.
func residues(count int, t, scale float64) (constant, linear []float64) {
	constant, linear = make([]float64, count), make([]float64, count)
	power := 1.0
	for i := range count {
		v := power * float64(1-i/2%2*2) / scale
		if i%2 == 0 {
			constant[i] = v
		} else {
			linear[i] = v
		}
		power *= t
	}
	return constant, linear
}

// shifted returns a polynomial times factor x^by.
func shifted(polynomial []float64, by, count int, factor float64) []float64 {
	p := make([]float64, count)
	for i, v := range polynomial {
		if v != 0 {
			p[i+by] = v * factor
		}
	}
	return p
}

// powers returns the powers of x divided by a scale; for infinity, only the highest power counts.
func powers(x float64, count int, scale float64) []float64 {
	p := make([]float64, count)
	if math.IsInf(x, 1) {
		p[count-1] = 1
		return p
	}
	power := 1.0
	for i := range p {
		p[i] = power / scale
		power *= x
	}
	return p
}

// modulus returns the product of all x-point and all x^2+point^2, the constant coefficient first.
func modulus(points, imaginary []float64) []float64 {
	p := []float64{1}
	times := func(constant float64, degree int) {
		next := make([]float64, len(p)+degree)
		for i, v := range p {
			next[i] += constant * v
			next[i+degree] += v
		}
		p = next
	}
	for _, point := range points {
		times(-point, 1)
	}
	for _, point := range imaginary {
		times(point*point, 2)
	}
	return p
}
