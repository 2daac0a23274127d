package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
)

// samplerNames are the rules that sample; the others are optimizers.
var samplerNames = []string{"sgld", "psgld", "sghmc", "baoab", "sgnht"}

// momentumSamplers are the samplers with momentum: their attributes in order, with customary values, and how they are made of them.
var momentumSamplers = map[string]struct {
	fields   string
	defaults []float64
	build    func(v []float64) langevin.Sampler
}{
	"sghmc": {"FRICTION,NOISE_ESTIMATE", []float64{0.1, 0}, func(v []float64) langevin.Sampler {
		return langevin.SGHMC{Friction: v[0], NoiseEstimate: v[1]}
	}},
	"baoab": {"FRICTION", []float64{0.1}, func(v []float64) langevin.Sampler { return langevin.BAOAB{Friction: v[0]} }},
	"sgnht": {"FRICTION", []float64{0.1}, func(v []float64) langevin.Sampler {
		return langevin.SGNHT{Friction: v[0], Splitting: langevin.SplittingBADODAB}
	}},
}

// samplerName is what comes before the attributes: "sghmc" of "sghmc:0.1".
func (c Config) samplerName() string {
	name, _, _ := strings.Cut(c.Sampler, ":")
	return name
}

func (c Config) isSampler() bool { return slices.Contains(samplerNames, c.samplerName()) }

// sampler is the sampler of a configuration that has one and is filled; burnIn is in steps.
func (c Config) sampler(burnIn int) (langevin.Sampler, error) {
	var s langevin.Sampler = langevin.SGLD{}
	_, rest, given := strings.Cut(c.Sampler, ":")
	kind, momentum := momentumSamplers[c.samplerName()]
	switch {
	case momentum:
		values := slices.Clone(kind.defaults)
		for i, text := range strings.Split(rest, ",") {
			if !given {
				break
			}
			v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || i == len(values) {
				return nil, errors.Errorf("train: sampler %q: wants %s, or %s:%s, of which the last ones may be left out",
					c.Sampler, c.samplerName(), c.samplerName(), kind.fields)
			}
			values[i] = v
		}
		s = kind.build(values)
	case given:
		return nil, errors.Errorf("train: sampler %q: %s has no attributes after a colon", c.Sampler, c.samplerName())
	case c.Sampler == "psgld":
		p := langevin.PSGLD{Alpha: *c.Alpha, Lambda: *c.Lambda, Gamma: langevin.Gamma(*c.Gamma)}
		if p.Gamma == langevin.GammaFrozen {
			p.FreezeAt = max(1, burnIn)
		}
		s = p
	}
	return s, s.Validate()
}
