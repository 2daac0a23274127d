package diagnostics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin/trial"
)

func TestKineticTemperatureByHand(t *testing.T) {
	for _, c := range []struct {
		name    string
		momenta []float64
		inverse []float64
		want    float64
	}{
		{"no masses", []float64{1, -2, 3}, nil, 14.0 / 3},
		{"one inverse mass", []float64{1, -2, 3}, []float64{0.5}, 7.0 / 3},
		{"one for each", []float64{1, -2, 3}, []float64{4, 0.25, 2}, 23.0 / 3},
		{"one momentum", []float64{-3}, []float64{2}, 18},
	} {
		got, err := diagnostics.KineticTemperature(c.momenta, c.inverse...)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-c.want) > 1e-15*c.want {
			t.Errorf("%s: kinetic temperature is %v, want %v", c.name, got, c.want)
		}
	}
	narrow, err := diagnostics.KineticTemperature([]float32{0.1, 0.2})
	if want := (float64(float32(0.1))*float64(float32(0.1)) + float64(float32(0.2))*float64(float32(0.2))) / 2; err != nil || narrow != want {
		t.Errorf("float32: kinetic temperature is %v (%v), want %v", narrow, err, want)
	}
}

// Momenta from N(0, T M) have scores of mean 0 and variance 1; half the variance, or wrong masses,
// are noticed.
func TestKineticScoreOfEquilibrium(t *testing.T) {
	const repeats, dimensions, temperature = 400, 257, 0.3
	z := trial.Draws(repeats*dimensions, 71)
	inverse := make([]float64, dimensions)
	for i := range inverse {
		inverse[i] = 0.5 + float64(i%7)
	}
	sum, squares := 0.0, 0.0
	var momenta []float64
	for repeat := range repeats {
		p := make([]float64, dimensions)
		for i := range p {
			p[i] = math.Sqrt(temperature/inverse[i]) * z[repeat*dimensions+i]
		}
		momenta = append(momenta, p...)
		measured, err := diagnostics.KineticTemperature(p, inverse...)
		if err != nil {
			t.Fatal(err)
		}
		score := diagnostics.KineticScore(measured, temperature, dimensions)
		sum += score
		squares += score * score
	}
	if z := sum / math.Sqrt(repeats); math.Abs(z) > trial.ZLimit {
		t.Errorf("the mean score's z is %.2f", z)
	}
	// The fourth moment of a chi-square's score is 3 + 12/d.
	if z := (squares/repeats - 1) / math.Sqrt((2+12.0/dimensions)/repeats); math.Abs(z) > trial.ZLimit {
		t.Errorf("the scores' variance is %.3f: z = %.2f", squares/repeats, z)
	}
	for name, of := range map[string]struct{ target, inverse float64 }{"twice the temperature": {2 * temperature, 1}, "masses left out": {temperature, 1}} {
		measured, err := diagnostics.KineticTemperature(momenta, of.inverse)
		if err != nil {
			t.Fatal(err)
		}
		if score := diagnostics.KineticScore(measured, of.target, len(momenta)); math.Abs(score) < 20 {
			t.Errorf("%s: score is %.1f, not noticed", name, score)
		}
	}
}

func TestKineticTemperatureRefuses(t *testing.T) {
	for _, c := range []struct {
		momenta, inverse []float64
		want             string
	}{
		{nil, nil, "0 momenta and 0 inverse masses"},
		{[]float64{1, 2, 3}, []float64{1, 2}, "3 momenta and 2 inverse masses"},
		{[]float64{1}, []float64{1, 2}, "1 momenta and 2 inverse masses"},
		{[]float64{1, 2}, []float64{1, 0}, "inverse mass 1 is 0"},
		{[]float64{1, 2}, []float64{math.Inf(1)}, "inverse mass 0 is +Inf"},
		{[]float64{1, math.NaN()}, nil, "twice the kinetic energy is NaN"},
		{[]float64{1, 1e200}, nil, "twice the kinetic energy is +Inf"},
	} {
		_, err := diagnostics.KineticTemperature(c.momenta, c.inverse...)
		if err == nil || !strings.HasPrefix(err.Error(), "diagnostics: kinetic temperature: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v: error is %v, want %q", c.momenta, c.inverse, err, c.want)
		}
	}
}
