package kernel

// maxPoints is the maximum number of rows or columns of an algorithm's matrices.
const maxPoints = 13

// cookToom is an algorithm for patches of patch x patch outputs of a filter of taps x taps. With d
// the patch of the input on which the outputs depend, g the filter and y the outputs,
//
//	y = A'[(G g G') * (B' d B)]A
//
// where * multiplies element by element. It rests on polynomials: their product is determined by
// its values at as many points as it has coefficients. G and A evaluate at the points; B', the
// transpose of an interpolation, does the rest. In one dimension, 4 outputs of a filter of 3 taps
// depend on 6 inputs and take 6 multiplications, one per point, instead of 12; in two dimensions 36
// instead of 144.
//
// The same matrices, applied in the other order, give both gradients: B[(G g G') * (A y A')]B' is
// d's, and G'[(B' d B) * (A y A')]G is g's.
//
// The choice of points determines how much rounding errors grow. Seven real points and infinity, as
// patches of 4 and a filter of 5 taps need, amplify them 19 times along one axis; with i and -i
// instead of two of the real points, 3 times. A product at a pair of imaginary points takes three
// real multiplications, one more than at two real points.
//
// Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016); Blahut,
// "Fast Algorithms for Signal Processing" (2010), chapter 5.
type cookToom struct {
	patch, taps, points int
	input               linearMap // B'
	output              linearMap // A'
	filter              linearMap // G
	spread              linearMap // A
	overlap             linearMap // B
	gather              linearMap // G'
}

// The algorithms, named by patch and taps. Their points are real (pairs of both signs share half of
// their arithmetic), infinity, and imaginary points of both signs.
var (
	cookToom43 = newCookToom(0, 4, 3, []float64{0, 0.6875, -0.6875, 1.4375, -1.4375}, nil)
	cookToom45 = newCookToom(1, 4, 5, []float64{0, 0.75, -0.75, 1.3125, -1.3125}, []float64{1})
	cookToom75 = newCookToom(2, 7, 5, []float64{0.5, -0.5, 0.9375, -0.9375, 1.375, -1.375}, []float64{0.8125, 1.125})
)

// linearMap is a matrix M that transforms both axes of a patch: x becomes M x M'. number is its
// index in the assembly's tables.
type linearMap struct {
	rows, columns int
	number        int
	finish        finishing
	at            [maxPoints * maxPoints]float64
}

// finishing is the operation that a linear map applies to its results before storing them.
type finishing uint8

const (
	finishStore finishing = iota
	finishAdd             // add the previous contents
	finishBias            // add a bias, then clamp to a floor and a ceiling; temporary starts with lanes of each
)

func (m *linearMap) row(i int) []float64 { return m.at[i*m.columns:][:m.columns] }

func (m *linearMap) transposed() linearMap {
	t := linearMap{rows: m.columns, columns: m.rows}
	for i := range m.rows {
		for j, v := range m.row(i) {
			t.row(j)[i] = v
		}
	}
	return t
}

// newCookToom computes the matrices in float64. Infinity is always among the points; each imaginary
// point stands for itself and its conjugate.
func newCookToom(number, patch, taps int, points, imaginary []float64) *cookToom {
	extent := patch + taps - 1
	rank := extent + len(imaginary)
	c := &cookToom{patch: patch, taps: taps, points: rank}
	c.input, c.filter, c.spread = linearMap{rows: rank, columns: extent}, linearMap{rows: rank, columns: taps}, linearMap{rows: rank, columns: patch}
	for i, point := range points {
		rest := modulus(without(points, i), imaginary)
		copy(c.input.row(i), rest)
		powers(c.filter.row(i), point, evaluate(rest, point))
		powers(c.spread.row(i), point, 1)
	}
	infinity := len(points)
	copy(c.input.row(infinity), modulus(points, imaginary))
	c.filter.row(infinity)[taps-1], c.spread.row(infinity)[patch-1] = 1, 1
	for i, point := range imaginary {
		c.setImaginary(infinity+1+3*i, point, modulus(points, without(imaginary, i)))
	}
	c.output, c.overlap, c.gather = c.spread.transposed(), c.input.transposed(), c.filter.transposed()
	c.output.finish, c.overlap.finish = finishBias, finishAdd
	maps := []*linearMap{&c.input, &c.output, &c.filter, &c.spread, &c.overlap, &c.gather}
	for i, m := range maps {
		m.number = number*len(maps) + i
	}
	return c
}

// without returns the points except the i-th.
func without(points []float64, i int) []float64 {
	return append(append([]float64(nil), points[:i]...), points[i+1:]...)
}

// setImaginary sets the three rows, starting with the given one, for the product at the points ti
// and -ti. With x = t z, residues modulo z^2+1 are g0 + g1 z and y0 + y1 z, and their product is
//
//	r0 = y0 (g0+g1) - g1 (y0+y1), r1 = y1 (g0-g1) + g1 (y0+y1)
//
// It is multiplied by the rest of the modulus, whose residue is a constant or a multiple of z, and
// the filter is divided by that residue.
func (c *cookToom) setImaginary(from int, t float64, rest []float64) {
	constant, linear := 0.0, 0.0
	for j, v := range rest {
		r0, r1 := residue(j, t)
		constant, linear = constant+v*r0, linear+v*r1
	}
	first, second := c.input.row(from+1), c.input.row(from+2) // the factors of r0 and r1
	for j, v := range rest {
		if linear == 0 {
			first[j], second[j+1] = v, v/t
		} else {
			first[j+1], second[j] = -v/t, v
		}
	}
	for j := range first {
		c.input.row(from)[j] = second[j] - first[j]
	}
	for j := range c.taps {
		g0, g1 := residue(j, t)
		g0, g1 = g0/(constant+linear), g1/(constant+linear)
		c.filter.row(from)[j], c.filter.row(from + 1)[j], c.filter.row(from + 2)[j] = g1, g0+g1, g0-g1
	}
	for j := range c.patch {
		y0, y1 := residue(j, t)
		c.spread.row(from)[j], c.spread.row(from + 1)[j], c.spread.row(from + 2)[j] = y0+y1, y0, y1
	}
}

// residue returns x^power modulo x^2+t^2, as a linear polynomial in x/t.
func residue(power int, t float64) (constant, linear float64) {
	v := float64(1 - power/2%2*2)
	for range power {
		v *= t
	}
	if power%2 == 0 {
		return v, 0
	}
	return 0, v
}

// powers sets row to the powers of x, divided by scale.
func powers(row []float64, x, scale float64) {
	power := 1.0
	for i := range row {
		row[i] = power / scale
		power *= x
	}
}

// modulus returns the product of all x-point and all x^2+point^2, the constant coefficient first.
func modulus(points, imaginary []float64) []float64 {
	p := []float64{1}
	times := func(constant float64, degree int) {
		p = append(p, make([]float64, degree)...)
		for i := len(p) - 1; i >= 0; i-- {
			p[i] *= constant
			if i >= degree {
				p[i] += p[i-degree]
			}
		}
	}
	for _, point := range points {
		times(-point, 1)
	}
	for _, point := range imaginary {
		times(point*point, 2)
	}
	return p
}

// evaluate returns the polynomial's value at x.
func evaluate(polynomial []float64, x float64) float64 {
	v := 0.0
	for i := len(polynomial) - 1; i >= 0; i-- {
		v = v*x + polynomial[i]
	}
	return v
}
