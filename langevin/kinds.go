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

// freezing is a Sampler whose preconditioner may stop adapting.
type freezing interface {
	Sampler
	frozenAt() int // the step at which it stops; 0 if none is known
	freeze(step int) Sampler
}

// FrozenAt is a sampler whose preconditioner stops adapting at a step, if it has one that stops and
// does not say when; likewise KSGLD's Rest. Other samplers are returned as they are.
func FrozenAt(sampler Sampler, step int) Sampler {
	if k, ok := sampler.(KSGLD); ok && k.Rest != nil {
		k.Rest = FrozenAt(k.Rest, step)
		sampler = k
	}
	if s, ok := sampler.(freezing); ok && s.frozenAt() == 0 {
		return s.freeze(step)
	}
	return sampler
}

// adaptsUntil is the step at which a sampler freezes its preconditioner; 0 if it does not.
func adaptsUntil(sampler Sampler) (last int) {
	for _, one := range withRest(sampler) {
		if s, ok := one.(freezing); ok {
			last = max(last, s.frozenAt())
		}
	}
	return last
}
