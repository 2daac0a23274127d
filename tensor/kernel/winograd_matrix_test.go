package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Along one axis, y = A'[(G g) * (B' d)] equals the definition of the convolution, and the
// transposed matrices give its gradients.
func TestCookToom(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	apply := func(m *linearMap, x []float64) []float64 {
		y := make([]float64, m.rows)
		for i := range y {
			for j, v := range m.row(i) {
				y[i] += v * x[j]
			}
		}
		return y
	}
	times := func(x, y []float64) []float64 {
		z := make([]float64, len(x))
		for i := range z {
			z[i] = x[i] * y[i]
		}
		return z
	}
	near := func(what string, got, want []float64) {
		t.Helper()
		for i := range want {
			if len(got) != len(want) || !(math.Abs(got[i]-want[i]) < 1e-12) {
				t.Fatalf("%s is %v, want %v", what, got, want)
			}
		}
	}
	for _, c := range []*cookToom{cookToom43, cookToom45, cookToom75} {
		d, g, y := normals[float64](r, c.patch+c.taps-1), normals[float64](r, c.taps), normals[float64](r, c.patch)
		out, dd, dg := make([]float64, len(y)), make([]float64, len(d)), make([]float64, len(g))
		for i := range y {
			for j := range g {
				out[i] += g[j] * d[i+j]
				dd[i+j] += g[j] * y[i]
				dg[j] += d[i+j] * y[i]
			}
		}
		near("y", apply(&c.output, times(apply(&c.filter, g), apply(&c.input, d))), out)
		near("dd", apply(&c.overlap, times(apply(&c.filter, g), apply(&c.spread, y))), dd)
		near("dg", apply(&c.gather, times(apply(&c.input, d), apply(&c.spread, y))), dg)
	}
}
