package langevin

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// headerAddress is the address of a stream in an optest row.
func headerAddress(header []float64, stream uint16) random.Address {
	return random.Address{Seed: uint64(header[0]), Chain: uint32(header[1]), Step: uint64(header[2]), Stream: stream}
}

// along is a direction's vector.
func (d direction) along(n int, header []float64) []float64 {
	z := make([]float64, n)
	if d.Stream == 0 {
		if d.Element != noElement {
			z[d.Element] = 1
		}
		return z
	}
	words := make([]uint32, n)
	random.Bits(words, 0, headerAddress(header, d.Stream))
	for i, word := range words {
		z[i] = 1
		if word>>31 == 1 {
			z[i] = -1
		}
	}
	return z
}

// operationCases are the rows of the ops that samplers of curvature and of natural gradients make.
func operationCases() []optest.Case {
	var cases []optest.Case
	for _, n := range []int{1, 31, 257, 9001} {
		for _, d := range []direction{{Stream: 7}, {Element: n / 2}, {Element: noElement}} {
			cases = append(cases, optest.Case{
				Name: fmt.Sprintf("displaced %d along %v", n, d), Op: displaced{d, -0.25}, Terms: 2, Steps: 2, NoGradient: true,
				Inputs: []optest.Input{optest.Float(optest.Normal, n), optest.Header},
				Naive: func(in [][]float64) []float64 {
					y := d.along(n, in[1])
					for i := range y {
						y[i] = in[0][i] - 0.25*y[i]
					}
					return y
				},
			})
			for _, rest := range []bool{false, true} {
				c := optest.Case{
					Name: fmt.Sprintf("curvature %d along %v, rest %v", n, d, rest), Op: curvature{d, 0.125}, Terms: 3, Steps: 2, NoGradient: true,
					Inputs: []optest.Input{optest.Float(optest.Normal, n), optest.Float(optest.Normal, n), optest.Header},
					Naive: func(in [][]float64) []float64 {
						y := d.along(n, in[2])
						for i := range y {
							y[i] *= (in[0][i] - in[1][i]) / 0.25
							if rest {
								y[i] += in[3][i]
							}
						}
						return y
					},
				}
				if rest {
					c.Inputs = append(c.Inputs, optest.Float(optest.Normal, n))
				}
				cases = append(cases, c)
			}
		}
		cases = append(cases, optest.Case{
			Name: fmt.Sprint("whitened move ", n), Op: whitenedMove{DataSize: 50, Stream: 9}, Terms: 3, Steps: 3, NoGradient: true,
			Inputs: []optest.Input{optest.Float(optest.Normal, n), optest.Float(optest.Uniform, 2), optest.Float(optest.Uniform, 3), optest.Header},
			Naive: func(in [][]float64) []float64 {
				step := int(in[3][2])
				rate, temperature := in[1][min(step, 1)], in[2][min(step, 2)]
				y := make([]float64, n)
				random.Normals(y, 0, headerAddress(in[3], 9))
				for i, g := range in[0] {
					y[i] = math.Sqrt(2*rate/50*temperature)*y[i] - rate*g
				}
				return y
			},
		}, optest.Case{
			Name: fmt.Sprint("gradient of the posterior ", n), Op: posteriorGradient{Gaussian(0.5), 20}, Terms: 2, NoGradient: true,
			Inputs: []optest.Input{optest.Float(optest.Normal, n), optest.Float(optest.Normal, n)},
			Naive: func(in [][]float64) []float64 {
				g := make([]float64, n)
				for i := range g {
					g[i] = in[1][i] + in[0][i]/5
				}
				return g
			},
		})
	}
	for _, shapes := range [][]tensor.Shape{
		{{17, 1}, {17, 1}}, {{9, 31}, {9, 5}}, {{3, 6, 4, 5}, {3, 33, 4, 5}}, {{33, 17}}, {{2, 3, 5, 1}},
	} {
		cases = append(cases, factorsCase(shapes))
	}
	return cases
}

// factorsCase is a row of factors, which freeze before its last steps.
func factorsCase(data []tensor.Shape) optest.Case {
	u := factorsUpdate{Alpha: 0.75, Damping: 0.1, Refresh: 100, FreezeAt: 3, Scales: [2]float64{0.5}}
	if len(data) == 2 {
		u.Scales[1] = 0.25
	}
	c := optest.Case{
		Name: fmt.Sprint("factors of ", data), Op: u, Steps: 5, NoGradient: true, Terms: data[0].Elements(),
		Loosen: 100, Reason: "the inverse multiplies rounding by the condition number",
	}
	for _, shape := range data {
		n := shape[1]
		c.Inputs = append(c.Inputs, optest.Float(optest.Normal, n, n), optest.Float(optest.Normal, n, n), optest.Float(optest.Normal, shape...))
	}
	c.Inputs = append(c.Inputs, optest.Header)
	c.Naive = func(in [][]float64) []float64 {
		step, means := int(in[len(in)-1][2]), []float64{}
		for s, shape := range data {
			n, factor := shape[1], in[sideInputs*s]
			if step < u.FreezeAt {
				moveFactor(factor, in[sideInputs*s+2], shape, step, u, s)
			}
			mean := 0.0
			for i := range n {
				mean += factor[i*n+i] / float64(n)
			}
			means = append(means, mean)
		}
		for s := range data {
			if step == 0 || step == u.FreezeAt-1 {
				damping := u.Damping
				if len(data) == 2 {
					damping = math.Sqrt(u.Damping * means[s] / means[1-s])
				}
				invertFactor(in[sideInputs*s+1], in[sideInputs*s], damping)
			}
		}
		return means
	}
	return c
}

func moveFactor(factor, x []float64, shape tensor.Shape, step int, u factorsUpdate, side int) {
	n, places := shape[1], shape.Elements()/(shape[0]*shape[1])
	for i := range n {
		for j := range n {
			sum := 0.0
			for b := range shape[0] {
				for p := range places {
					sum += x[(b*n+i)*places+p] * x[(b*n+j)*places+p]
				}
			}
			if step == 0 {
				factor[i*n+j] = u.Scales[side] * sum
			} else {
				factor[i*n+j] = u.Alpha*factor[i*n+j] + (1-u.Alpha)*u.Scales[side]*sum
			}
		}
	}
}

// invertFactor is whiten by gonum.
func invertFactor(whitener, factor []float64, damping float64) {
	n := int(math.Sqrt(float64(len(factor))))
	damped := mat.NewSymDense(n, append([]float64{}, factor...))
	for i := range n {
		damped.SetSym(i, i, damped.At(i, i)+damping)
	}
	var cholesky mat.Cholesky
	if !cholesky.Factorize(damped) {
		panic("langevin: the factor is not positive definite")
	}
	var lower, inverse mat.TriDense
	cholesky.LTo(&lower)
	if err := inverse.InverseTri(&lower); err != nil {
		panic(err)
	}
	copy(whitener, mat.DenseCopyOf(&inverse).RawMatrix().Data)
}

func TestOperations(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	optest.RunCases(t, host, operationCases())
}

// TestFactorsRefuseShapes: Shape refuses data whose products the kernel cannot compute.
func TestFactorsRefuseShapes(t *testing.T) {
	u := factorsUpdate{Alpha: 0.75, Damping: 0.1, Refresh: 100, FreezeAt: 3, Scales: [2]float64{0.5}}
	for n, refused := range map[int]bool{46340: false, 60000: true} {
		square := tensor.Shape{n, n}
		_, err := u.Shape([]tensor.Shape{square, square, {10, n}, {3}})
		if (err != nil) != refused {
			t.Errorf("%d inputs: %v", n, err)
		}
	}
}
