package langevin

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/tensor"
)

var somePriors = []Prior{
	Flat(), Gaussian(0.3), Gaussian(20), Laplace(0.05), Laplace(4), StudentT(1, 0.5), StudentT(3, 0.1), StudentT(2.5, 7), StudentT(200, 1),
}

// density is gonum's for the family.
func density(p Prior) interface{ LogProb(x float64) float64 } {
	switch p.Kind {
	case GaussianPrior:
		return distuv.Normal{Sigma: p.Scale}
	case LaplacePrior:
		return distuv.Laplace{Scale: p.Scale}
	default:
		return distuv.StudentsT{Sigma: p.Scale, Nu: p.DoF}
	}
}

func TestLogDensity(t *testing.T) {
	for _, p := range somePriors[1:] {
		// theta = scale tan(u) maps the line to an interval, where Simpson's rule would gain
		// nothing: tails are heavy.
		const points = 200001
		sum := 0.0
		for i := range points {
			u := (float64(i) + 0.5 - points/2.) * math.Pi / points
			theta := p.Scale * math.Tan(u)
			got := p.LogDensity(theta)
			sum += math.Exp(got) * p.Scale / (math.Cos(u) * math.Cos(u)) * math.Pi / points
			if i%1000 == 0 {
				if want := density(p).LogProb(theta); !(math.Abs(got-want) < 1e-9*(1+math.Abs(want))) {
					t.Errorf("%v: log density at %v is %v, gonum has %v", p, theta, got, want)
				}
			}
		}
		if !(math.Abs(sum-1) < 1e-6) {
			t.Errorf("%v: the density integrates to %v", p, sum)
		}
	}
	if got := Flat().LogDensity(3); got != 0 {
		t.Errorf("flat: log density is %v, want 0", got)
	}
}

// TestSlope compares the gradient that updates follow with finite differences of the density, in
// both precisions.
func TestSlope(t *testing.T) {
	const dataSize = 50
	theta := []float64{-30, -2, -0.7, -0.04, -1e-3, 1e-3, 0.3, 1, 5, 100}
	for _, p := range somePriors {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			dw := make([]float64, len(theta))
			for i := range dw {
				dw[i] = float64(i) - 3.5
			}
			g := make([]float64, len(theta))
			priorTermOf[float64](p, dataSize).fill(g, theta, dw)
			narrow := priorTermOf[float32](p, dataSize)
			for i, x := range theta {
				d := 1e-4 * math.Abs(x)
				prior := -(p.LogDensity(x+d) - p.LogDensity(x-d)) / (2 * d) / dataSize
				if want := dw[i] + prior; !(math.Abs(g[i]-want) < 1e-6*(1+math.Abs(prior))) {
					t.Errorf("at %v: %v, want %v", x, g[i], want)
				}
				single := make([]float32, 1)
				narrow.fill(single, []float32{float32(x)}, []float32{float32(dw[i])})
				if want := g[i]; !(math.Abs(float64(single[0])-want) < 4*0x1p-23*(math.Abs(dw[i])+math.Abs(want))) {
					t.Errorf("at %v in float32: %v, want %v", x, single[0], want)
				}
			}
			// All priors are symmetric: at 0 there is no slope, whichever zero it is.
			zeros := []float64{0, math.Copysign(0, -1)}
			priorTermOf[float64](p, dataSize).fill(g[:2], zeros, []float64{0.25, 0.25})
			if g[0] != 0.25 || g[1] != 0.25 {
				t.Errorf("at 0: %v, want 0.25 twice", g[:2])
			}
		})
	}
}

func TestVirial(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 5, 31, 256} {
		w, g := make([]float32, n), make([]float32, n+3)
		want, size := 0.0, 0.0
		for i := range w {
			w[i], g[i] = float32(i%7)-2.9, float32(i%5)-1.7
			want += float64(w[i]) * float64(g[i])
			size += math.Abs(float64(w[i]) * float64(g[i]))
		}
		if got := virial(w, g); !(math.Abs(got-want) <= 1e-6*size) {
			t.Errorf("%d elements: %v, want %v", n, got, want)
		}
	}
}

func TestPriorValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, p := range []Prior{
		{}, {Kind: 99}, {Kind: FlatPrior, Scale: 1}, {Scale: 1}, {Scale: nan}, {DoF: 1},
		Gaussian(0), Gaussian(-1), Gaussian(nan), Gaussian(inf), {Kind: GaussianPrior, Scale: 1, DoF: 2},
		Laplace(0), Laplace(-1), Laplace(nan), {Kind: LaplacePrior, Scale: 1, DoF: 2},
		StudentT(0, 1), StudentT(-1, 1), StudentT(nan, 1), StudentT(inf, 1), StudentT(3, 0), StudentT(3, nan), StudentT(3, inf),
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
	for _, p := range somePriors {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestPriorString(t *testing.T) {
	for want, p := range map[string]Prior{
		"flat": Flat(), "gaussian:0.3": Gaussian(0.3), "laplace:2": Laplace(2), "student-t:3,0.5": StudentT(3, 0.5),
		"scale-mixture:0.5,1,0.1": ScaleMixture(0.5, 1, 0.1),
	} {
		if got := p.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, err := ParsePrior(want); err != nil || got != p {
			t.Errorf("%q reads as %+v, %v, want %+v", want, got, err, p)
		}
	}
}

// TestZeroPrior: a Prior that was forgotten is an error, except as the common one of a Posterior,
// where it is flat.
func TestZeroPrior(t *testing.T) {
	if err := (Prior{}).Validate(); err == nil || !strings.Contains(err.Error(), "no family: make a prior by Gaussian") {
		t.Error(err)
	}
	p := Posterior{DataSize: 3}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	got, err := p.Priors([]string{"linear1.weight"}, []tensor.Shape{{2, 3}})
	if err != nil || got[0] != Flat() {
		t.Errorf("priors %v, %v, want a flat one", got, err)
	}
	p.Layers = map[string]Prior{"linear1": {}}
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), `layer "linear1"`) {
		t.Error(err)
	}
}
