package pollen

import (
	"testing"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// Without a method, fewer images have more and shorter chains, whose steps together do not depend
// on the number of images below 12 500.
func TestRecommended(t *testing.T) {
	for _, c := range []struct {
		spec                                               Spec
		examples, chains, epochs, warm, burnIn, samples, n int
		schedule                                           string
	}{
		{Spec{}, 1000, 16, 25, 25, 22, 4, 1, "cyclical:0.03,1"},
		{Spec{}, 2000, 15, 13, 13, 11, 4, 1, "cyclical:0.03,1"},
		{Spec{Subset: 1000}, 60_000, 16, 25, 25, 22, 4, 1, "cyclical:0.03,1"},
		{Spec{}, 6000, 8, 8, 5, 7, 4, 1, "cyclical:0.03,1"},
		{Spec{}, 60_000, 4, 8, 2, 7, 8, 1, "cyclical:0.03,1"},
		{Spec{Network: "cnn"}, 376, 15, 25, 25, 22, 4, 1, "cyclical:0.0075,1"},
		{Spec{Batch: 1000}, 1000, 16, 250, 250, 225, 4, 1, "cyclical:0.03,1"},
		{Spec{Epochs: 4}, 1000, 16, 4, 25, 3, 4, 1, "cyclical:0.03,1"},
		{Spec{Epochs: 1, Chains: 2, Samples: 3}, 1000, 2, 1, 25, 0, 3, 1, "cyclical:0.03,1"},
		// What is given stays.
		{Spec{Cycles: 4, Epochs: 40}, 1000, 16, 40, 25, 9, 4, 4, "cyclical:0.0126,4"},
		{Spec{Chains: 2}, 1000, 2, 25, 25, 22, 16, 1, "cyclical:0.03,1"},
		// A step has at most one sample.
		{Spec{Chains: 2, Epochs: 4}, 100, 2, 4, 25, 3, 10, 1, "cyclical:0.03,1"},
		{Spec{WarmEpochs: 3}, 1000, 16, 25, 3, 22, 4, 1, "cyclical:0.03,1"},
		// A burn-in or a schedule means chains without cycles.
		{Spec{BurnIn: new(10)}, 1000, 4, 100, 100, 10, 10, 0, "constant:0.0063"},
		{Spec{Schedule: optimizers.Constant{Rate: 0.01}}, 1000, 4, 100, 100, 38, 10, 0, "constant:0.01"},
	} {
		if c.spec.WarmEpochs > 0 {
			c.spec.WarmStart = optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
		}
		s, err := c.spec.resolve(c.examples)
		if err != nil {
			t.Errorf("%+v, %d examples: %v", c.spec, c.examples, err)
			continue
		}
		if s.Chains != c.chains || s.Epochs != c.epochs || s.WarmEpochs != c.warm || *s.BurnIn != c.burnIn || s.Samples != c.samples || s.Cycles != c.n ||
			s.Schedule.String() != c.schedule {
			t.Errorf("%+v, %d examples: %d chains of %d epochs, warm start of %d, burn-in %d, %d samples, %d cycles, %v, want %+v", c.spec, c.examples,
				s.Chains, s.Epochs, s.WarmEpochs, *s.BurnIn, s.Samples, s.Cycles, s.Schedule, c)
		}
		prior := recommendedPrior
		if c.n == 0 {
			prior = customaryPrior
		}
		if *s.Prior != prior {
			t.Errorf("%+v: prior %v, want %v", c.spec, *s.Prior, prior)
		}
	}
	given := langevin.Laplace(0.1)
	s, err := Spec{Prior: &given}.resolve(1000)
	if err != nil || *s.Prior != given {
		t.Errorf("prior %v, want %v (%v)", s.Prior, given, err)
	}
}
