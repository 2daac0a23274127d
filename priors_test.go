package pollen

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/langevin"
)

func TestParsePriors(t *testing.T) {
	for text, want := range map[string]map[string]langevin.Prior{
		"a=flat": {"a": langevin.Flat()},
		"a.bias=gaussian:0.3/conv1=student-t:3,0.1": {"conv1": langevin.StudentT(3, 0.1), "a.bias": langevin.Gaussian(0.3)},
	} {
		got, err := parsePriors(text)
		if err != nil || !maps.Equal(got, want) || joinPriors(got) != text {
			t.Errorf("%q: %v (%v), want %v; as text %q", text, got, err, want, joinPriors(got))
		}
	}
	for _, text := range []string{"", "flat", "a=", "=flat", "a=flat/", "a=flat/a=flat", "a=gaussian:x", "a=flat b=flat"} {
		if got, err := parsePriors(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	if text := joinPriors(nil); text != "" {
		t.Errorf("no priors are %q", text)
	}
}

func anyPriors(t *rapid.T) map[string]langevin.Prior {
	return rapid.MapOfN(rapid.SampledFrom([]string{"conv1", "linear2.bias"}), rapid.SampledFrom([]langevin.Prior{
		langevin.Flat(), langevin.FanIn(1. / 3), langevin.StudentT(3, 0.1),
	}), 1, 2).Draw(t, "priors")
}
