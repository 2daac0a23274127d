package langevin

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/tensor"
)

var someMixtures = []Prior{
	ScaleMixture(0.5, 1, 0.0025), ScaleMixture(0.25, 1.5, 0.1), ScaleMixture(0.75, 20, 19), ScaleMixture(0.01, 0.3, 1e-4),
}

// TestScaleMixtureDensity compares the density with the sum of gonum's two, its integral with 1,
// and the energy with the density.
func TestScaleMixtureDensity(t *testing.T) {
	for _, p := range someMixtures {
		wide, narrow := distuv.Normal{Sigma: p.Scale}, distuv.Normal{Sigma: p.Narrow}
		energy := p.energy()
		const points = 400001
		sum := 0.0
		for i := range points {
			u := (float64(i) + 0.5 - points/2.) * math.Pi / points
			theta := p.Narrow * math.Tan(u)
			got := p.LogDensity(theta)
			sum += math.Exp(got) * p.Narrow / (math.Cos(u) * math.Cos(u)) * math.Pi / points
			if i%1000 != 0 {
				continue
			}
			if want := math.Log(p.Weight*wide.Prob(theta) + (1-p.Weight)*narrow.Prob(theta)); !math.IsInf(want, -1) && math.Abs(got-want) > 1e-11*(1+math.Abs(want)) {
				t.Errorf("%v: log density at %v is %v, gonum has %v", p, theta, got, want)
			}
			if got, want := energy(theta), p.LogDensity(0)-got; math.Abs(got-want) > 1e-11*(1+math.Abs(want)) {
				t.Errorf("%v: energy at %v is %v, want %v", p, theta, got, want)
			}
		}
		if !(math.Abs(sum-1) < 1e-6) {
			t.Errorf("%v: the density integrates to %v", p, sum)
		}
	}
}

// TestScaleMixtureSlope compares the gradient that updates follow with finite differences of the
// density, where one Gaussian outweighs the other and where none does, in both precisions.
func TestScaleMixtureSlope(t *testing.T) {
	const dataSize = 50
	for _, p := range someMixtures {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			s := priorTermOf[float64](p, dataSize)
			even := math.Sqrt(math.Max(0, s.odds/s.bend)) // as likely from either
			theta := []float64{-100, -p.Scale, -1.2 * even, -even, -0.3 * p.Narrow, 0, 1e-3 * p.Narrow, p.Narrow, 0.9 * even, 1.5 * even, 3 * p.Scale}
			dw, g := make([]float64, len(theta)), make([]float64, len(theta))
			for i := range dw {
				dw[i] = float64(i) - 3.5
			}
			s.fill(g, theta, dw)
			narrow := priorTermOf[float32](p, dataSize)
			for i, x := range theta {
				d := 1e-4 * math.Max(math.Abs(x), p.Narrow)
				prior := -(p.LogDensity(x+d) - p.LogDensity(x-d)) / (2 * d) / dataSize
				if want := dw[i] + prior; !(math.Abs(g[i]-want) < 1e-5*(1+math.Abs(prior))) {
					t.Errorf("at %v: %v, want %v", x, g[i], want)
				}
				// The argument itself is rounded: that counts where the slope is steep.
				single, rounded := make([]float32, 1), make([]float64, 1)
				narrow.fill(single, []float32{float32(x)}, []float32{float32(dw[i])})
				s.fill(rounded, []float64{float64(float32(x))}, dw[i:i+1])
				if want := rounded[0]; !(math.Abs(float64(single[0])-want) < 4*0x1p-23*(math.Abs(dw[i])+math.Abs(want-dw[i]))) {
					t.Errorf("at %v in float32: %v, want %v", x, single[0], want)
				}
			}
		})
	}
}

func TestScaleMixtureValidate(t *testing.T) {
	for _, p := range []Prior{
		ScaleMixture(0, 1, 0.1), ScaleMixture(1, 1, 0.1), ScaleMixture(math.NaN(), 1, 0.1), ScaleMixture(0.5, 1, 0), ScaleMixture(0.5, 1, -1),
		ScaleMixture(0.5, 1, 1), ScaleMixture(0.5, 1, 2), ScaleMixture(0.5, 1, math.NaN()), ScaleMixture(0.5, math.Inf(1), 1), ScaleMixture(0.5, -1, -2),
		{Kind: GaussianPrior, Scale: 1, Weight: 0.5}, {Kind: GaussianPrior, Scale: 1, Narrow: 0.5},
		{Kind: ScaleMixturePrior, Scale: 1, Narrow: 0.1, Weight: 0.5, DoF: 1},
	} {
		if err := p.Validate(); err == nil {
			t.Errorf("%+v: no error", p)
		}
	}
	for _, p := range someMixtures {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	if got := someMixtures[1].String(); got != "scale-mixture:0.25,1.5,0.1" {
		t.Errorf("got %q", got)
	}
	// Kernels get the numbers that the host computes with.
	if got := len(someMixtures[0].KernelArguments(tensor.Float32, 50)); got != len(Flat().KernelArguments(tensor.Float32, 50)) {
		t.Errorf("%d arguments, other families have another number", got)
	}
}
