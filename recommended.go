package pollen

import (
	"cmp"
	"fmt"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// The method of a specification without one: chains that each make a few cycles, from weights that
// an optimizer found. docs/defaults.md has the measurements that it was chosen by.
const (
	recommendedChains = 4
	recommendedCycles = 4
)

// recommended returns the specification with a method if it has none: Auto for the head of a frozen
// ONNX network, and otherwise SGHMC with several chains, cycles and, if warm, a warm start. A field
// that is given stays, and excludes what it does not fit with.
func (s Spec) recommended(warm bool) Spec {
	if s.Method != nil {
		return s
	}
	if s.isPretrained() && cmp.Or(s.Freeze, freezeAll) == freezeAll {
		s.Method = Auto{} // a head is cheap enough for samplers on all data
		return s
	}
	s.Method = langevin.SGHMC{Friction: 0.1}
	if len(s.Temperatures) > 0 { // which velocities exclude
		s.Method = langevin.SGLD{}
	}
	s.Chains = cmp.Or(s.Chains, recommendedChains)
	if warm && s.WarmStart == nil && s.Start == "" {
		s.WarmStart = optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	}
	// Settings of chains that are sampled from one end of burn-in to the end of the run.
	constant := s.Schedule != nil || s.BurnIn != nil || s.BurnInSteps != 0 || s.Thinning != 0 || s.Keep != 0 || s.Anchor != 0 || len(s.Temperatures) > 0
	if s.Cycles == 0 && !constant {
		s.Cycles = recommendedCycles
		for _, most := range []int{s.Epochs, s.Samples} {
			if most > 0 {
				s.Cycles = min(s.Cycles, most)
			}
		}
	}
	if s.Weights == "" {
		s.Weights = Equal
	}
	return s
}

// recommendedFor returns the recommended specification for data. Data of which no image can be held
// out of the warm start, because each class has only one or only one group, get none.
func (s Spec) recommendedFor(data *datasets.Dataset, e environment) Spec {
	if s.Method != nil || s.isPretrained() {
		return s.recommended(true)
	}
	of := data
	if s.Subset > 0 && s.Subset < data.Len() {
		if first, err := data.First(s.Subset); err == nil {
			of = first
		}
	}
	_, _, err := s.divided(of)
	if err != nil && s.WarmStart == nil && s.Start == "" {
		e.remark(fmt.Sprintf("no warm start: %v", err))
	}
	return s.recommended(err == nil)
}
