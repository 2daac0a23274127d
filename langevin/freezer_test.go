package langevin

import "testing"

// TestFrozenAt: a sampler without a step gets it, as does KSGLD's Rest.
func TestFrozenAt(t *testing.T) {
	open, said := PSGLD{Alpha: 0.9, Lambda: 1, Gamma: GammaFrozen}, PSGLD{Alpha: 0.9, Lambda: 1, Gamma: GammaFrozen, FreezeAt: 3}
	frozen := open
	frozen.FreezeAt = 7
	for _, c := range []struct{ sampler, want Sampler }{
		{open, frozen}, {said, said}, {SGLD{}, SGLD{}},
		{KSGLD{Rest: open}, KSGLD{FreezeAt: 7, Rest: frozen}}, {KSGLD{Rest: said}, KSGLD{FreezeAt: 7, Rest: said}},
		{KSGLD{FreezeAt: 3, Rest: open}, KSGLD{FreezeAt: 3, Rest: frozen}}, {KSGLD{Rest: SGLD{}}, KSGLD{FreezeAt: 7, Rest: SGLD{}}},
		{KSGLD{}, KSGLD{FreezeAt: 7}},
	} {
		if got := FrozenAt(c.sampler, 7); got != c.want {
			t.Errorf("%+v becomes %+v, want %+v", c.sampler, got, c.want)
		}
	}
}
