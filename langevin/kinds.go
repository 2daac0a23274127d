package langevin

// HasMomentum reports whether a sampler has velocities, which belong to a temperature.
func HasMomentum(sampler Sampler) bool {
	for _, s := range withRest(sampler) {
		if _, ok := s.(momentumRule); ok {
			return true
		}
	}
	return false
}

// FrozenAt is a sampler whose preconditioner stops adapting at a step, if it has one that stops and
// does not say when. Other samplers are returned as they are.
func FrozenAt(sampler Sampler, step int) Sampler {
	freeze := func(at int) int {
		if at == 0 {
			return step
		}
		return at
	}
	switch s := sampler.(type) {
	case PSGLD:
		if s.Gamma == GammaFrozen {
			s.FreezeAt = freeze(s.FreezeAt)
		}
		return s
	case FisherSGLD:
		s.FreezeAt = freeze(s.FreezeAt)
		return s
	case PSGHMC:
		if s.Gamma == GammaFrozen {
			s.FreezeAt = freeze(s.FreezeAt)
		}
		return s
	case KSGLD:
		s.FreezeAt = freeze(s.FreezeAt)
		return s
	}
	return sampler
}
