package langevin

// Freezer is an optional interface of a Sampler whose preconditioner stops adapting at a step.
// While a preconditioner adapts, chains do not target exp(-U/T). Runs therefore freeze it at the
// end of burn-in, and Plan.Temperatures refuses a sampler that would still adapt when samples are
// drawn. Samplers of other packages may implement it, too.
type Freezer interface {
	Sampler
	// FreezeStep returns the step from which on the preconditioner stays constant, or 0 if none is
	// set.
	FreezeStep() int
	// Freeze returns the sampler with that step. A sampler that is meant to adapt to the end, such
	// as PSGLD with GammaNone, returns itself.
	Freeze(step int) Sampler
}

// FrozenAt returns the sampler with its preconditioner frozen from the given step on. It sets the
// step of a Freezer that has none, also of KSGLD's Rest, and returns all other samplers unchanged.
func FrozenAt(sampler Sampler, step int) Sampler {
	if k, ok := sampler.(KSGLD); ok && k.Rest != nil {
		k.Rest = FrozenAt(k.Rest, step)
		sampler = k
	}
	if s, ok := sampler.(Freezer); ok && s.FreezeStep() == 0 {
		return s.Freeze(step)
	}
	return sampler
}

// adaptsUntil returns the step at which a sampler freezes its preconditioner, 0 if it has none that
// freezes.
func adaptsUntil(sampler Sampler) (last int) {
	for _, one := range withRest(sampler) {
		if s, ok := one.(Freezer); ok {
			last = max(last, s.FreezeStep())
		}
	}
	return last
}

// withRest returns the sampler and, if it is a KSGLD with a Rest, that sampler too.
func withRest(sampler Sampler) []Sampler {
	if k, ok := sampler.(KSGLD); ok && k.Rest != nil {
		return []Sampler{sampler, k.Rest}
	}
	return []Sampler{sampler}
}
