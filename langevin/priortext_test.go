package langevin

import "testing"

func TestParsePrior(t *testing.T) {
	for text, want := range map[string]Prior{
		"flat": Flat(), "gaussian:0.3": Gaussian(0.3), "laplace:0.1": Laplace(0.1),
		"fan-in:2": FanIn(2), "scale-mixture:0.25,1,0.1": ScaleMixture(0.25, 1, 0.1),
		"student-t:3,0.1": StudentT(3, 0.1), "student-t:3, 0.1": StudentT(3, 0.1),
	} {
		if got, err := ParsePrior(text); err != nil || got != want {
			t.Errorf("%q: %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "flat:1", "gaussian", "gaussian:", "gaussian:x", "gaussian:0.1,2", "gaussian:0", "gaussian:NaN",
		"scale-mixture:0.5,0.1,1", "scale-mixture:0.5", "laplace:-1", "student-t:3", "student-t:0,1", "cauchy:1",
		"fan-in", "fan-in:0", "fan-in:1,2"} {
		if p, err := ParsePrior(text); err == nil {
			t.Errorf("%q: %v, want an error", text, p)
		}
	}
}
