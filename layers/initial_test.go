package layers

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func filled(i Initializer, seed uint64, chain uint32, stream uint16, shape tensor.Shape) []float64 {
	values := make([]float64, shape.Elements())
	i.Fill(seed, chain, stream, shape, values)
	return values
}

func equal(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestInitialMoments compares the mean, the variance and the fraction within one standard
// deviation with the distribution's, to five standard errors.
func TestInitialMoments(t *testing.T) {
	filter, matrix := tensor.Shape{64, 31, 5, 5}, tensor.Shape{257, 100}
	for _, c := range []struct {
		name     string
		i        Initializer
		shape    tensor.Shape
		variance float64
		uniform  bool
	}{
		{"He filter", He{}, filter, 2. / (31 * 25), false},
		{"He matrix", He{}, matrix, 2. / 100, false},
		{"LeCun", LeCun{}, filter, 1. / (31 * 25), false},
		{"Glorot normal", Glorot{}, filter, 2. / (25 * (31 + 64)), false},
		{"Glorot uniform", Glorot{Uniform: true}, matrix, 2. / 357, true},
		{"Normal", Normal{Std: .3}, matrix, .09, false},
		{"Normal vector", Normal{Std: 2}, tensor.Shape{20011}, 4, false},
		{"Orthogonal", Orthogonal{Gain: 3}, matrix, 9. / 257, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := filled(c.i, 1, 2, 3, c.shape)
			n, std := float64(len(values)), math.Sqrt(c.variance)
			var mean, square, within float64
			for _, v := range values {
				mean += v / n
				square += v * v / n
				if math.Abs(v) < std {
					within += 1 / n
				}
				if c.uniform && math.Abs(v) > math.Sqrt(3)*std {
					t.Fatalf("%v is outside the uniform's bounds", v)
				}
			}
			share := math.Erf(math.Sqrt(.5))
			if c.uniform {
				share = math.Sqrt(1. / 3)
			}
			if math.Abs(mean) > 5*std/math.Sqrt(n) {
				t.Errorf("mean %v of deviation %v", mean, std)
			}
			if math.Abs(square/c.variance-1) > 5*math.Sqrt(2/n) {
				t.Errorf("variance %v, want %v", square, c.variance)
			}
			if math.Abs(within-share) > 5*math.Sqrt(share*(1-share)/n) {
				t.Errorf("share within one deviation %v, want %v", within, share)
			}
		})
	}
}

func TestInitialValuesHaveAnAddress(t *testing.T) {
	shape := tensor.Shape{7, 3, 3, 3}
	for _, i := range []Initializer{He{}, LeCun{}, Glorot{}, Glorot{Uniform: true}, Normal{1}, Orthogonal{}} {
		values := filled(i, 1, 2, 3, shape)
		if !equal(values, filled(i, 1, 2, 3, shape)) {
			t.Errorf("%#v: the same address gave other bits", i)
		}
		for what, other := range map[string][]float64{
			"seed": filled(i, 4, 2, 3, shape), "chain": filled(i, 1, 4, 3, shape), "stream": filled(i, 1, 2, 4, shape),
		} {
			if values[0] == other[0] || values[len(values)-1] == other[len(values)-1] {
				t.Errorf("%#v: another %s gave the same values", i, what)
			}
		}
	}
	for _, want := range []float64{0, -1.5} {
		for _, got := range filled(Constant{want}, 1, 2, 3, shape) {
			if got != want {
				t.Fatalf("constant %v gave %v", want, got)
			}
		}
	}
}

func TestOrthogonal(t *testing.T) {
	for _, shape := range []tensor.Shape{{1, 1}, {1, 31}, {31, 1}, {33, 33}, {20, 57}, {57, 20}, {16, 3, 3, 3}, {33, 3, 3, 3}, {5}} {
		for _, gain := range []float64{0, math.Sqrt2} {
			values := filled(Orthogonal{Gain: gain}, 5, 0, 1, shape)
			columns, _ := fans(shape)
			rows := len(values) / columns
			if rows > columns {
				values = tensor.Transposed(values, rows, columns)
				rows, columns = columns, rows
			}
			square := gain * gain
			if gain == 0 {
				square = 1
			}
			for i := range rows {
				for j := range rows {
					want := 0.
					if i == j {
						want = square
					}
					got := dot(values[i*columns:(i+1)*columns], values[j*columns:(j+1)*columns])
					if math.Abs(got-want) > 1e-13 {
						t.Fatalf("shape %v, gain %v: product of vectors %d and %d is %v, want %v", shape, gain, i, j, got, want)
					}
				}
			}
		}
	}
}

// TestOrthogonalIsUniform looks at 2x2 matrices: half of them are rotations, and the first row's
// angle is uniform.
func TestOrthogonalIsUniform(t *testing.T) {
	const n = 4000
	rotations := 0
	var quadrants [4]int
	for stream := range uint16(n) {
		m := filled(Orthogonal{}, 9, 0, stream, tensor.Shape{2, 2})
		if m[0]*m[3]-m[1]*m[2] > 0 {
			rotations++
		}
		quadrants[int((math.Atan2(m[1], m[0])+math.Pi)/(math.Pi/2))%4]++
	}
	if d := math.Abs(float64(rotations) - n/2); d > 5*math.Sqrt(n)/2 {
		t.Errorf("%d of %d are rotations", rotations, n)
	}
	for i, count := range quadrants {
		if d := math.Abs(float64(count) - n/4); d > 5*math.Sqrt(n*3)/4 {
			t.Errorf("quadrant %d has %d of %d", i, count, n)
		}
	}
}
