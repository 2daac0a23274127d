package langevin_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// ownSampler is a sampler of another package that implements both optional interfaces.
type ownSampler struct {
	langevin.SGLD
	FreezeAt int
}

func (s ownSampler) FreezeStep() int { return s.FreezeAt }

func (s ownSampler) Freeze(step int) langevin.Sampler {
	s.FreezeAt = step
	return s
}

var errNoState = errors.New("no such parameter")

func (s ownSampler) EffectiveStepSize(_ *graph.Session, _ int, parameter string, n int, h float64) ([]float64, error) {
	if parameter == "" {
		return nil, errNoState
	}
	return slices.Repeat([]float64{3 * h}, n), nil
}

var (
	_ langevin.Freezer            = ownSampler{}
	_ langevin.EffectiveStepSizer = ownSampler{}
)

// TestOwnFreezer: FrozenAt, directly and through KSGLD's Rest, sets a step that is not set, and a
// plan refuses samples before that step.
func TestOwnFreezer(t *testing.T) {
	if got := langevin.FrozenAt(ownSampler{}, 7); got != (ownSampler{FreezeAt: 7}) {
		t.Errorf("FrozenAt(own, 7) = %+v, want FreezeAt 7", got)
	}
	if got := langevin.FrozenAt(ownSampler{FreezeAt: 3}, 7); got != (ownSampler{FreezeAt: 3}) {
		t.Errorf("FrozenAt(own at 3, 7) = %+v, want FreezeAt 3", got)
	}
	rest := langevin.FrozenAt(langevin.KSGLD{Rest: ownSampler{}}, 7).(langevin.KSGLD).Rest
	if rest != (ownSampler{FreezeAt: 7}) {
		t.Errorf("Rest = %+v, want FreezeAt 7", rest)
	}
	plan := langevin.Plan{Steps: 20, BurnIn: 6, Thinning: 1}
	if _, err := plan.Temperatures(ownSampler{FreezeAt: 7}, 1); err == nil || !strings.Contains(err.Error(), "adapts up to step 7") {
		t.Errorf("Temperatures(own at 7) = %v, want an error about step 7", err)
	}
	if _, err := plan.Temperatures(ownSampler{FreezeAt: 6}, 1); err != nil {
		t.Errorf("Temperatures(own at 6) = %v, want no error", err)
	}
}

// TestOwnEffectiveStepSizer: the function asks the sampler, and passes its error on.
func TestOwnEffectiveStepSizer(t *testing.T) {
	got, err := langevin.EffectiveStepSize(ownSampler{}, nil, 0, "w", 2, 0.5)
	if err != nil || !slices.Equal(got, []float64{1.5, 1.5}) {
		t.Errorf("EffectiveStepSize(own) = %v, %v, want 1.5 twice", got, err)
	}
	if _, err := langevin.EffectiveStepSize(ownSampler{}, nil, 0, "", 2, 0.5); !errors.Is(err, errNoState) {
		t.Errorf("EffectiveStepSize(own, no parameter) = %v, want %v", err, errNoState)
	}
	type plain struct{ langevin.Sampler }
	if got, err := langevin.EffectiveStepSize(plain{langevin.SGLD{}}, nil, 0, "w", 2, 0.5); got != nil || err != nil {
		t.Errorf("EffectiveStepSize(plain) = %v, %v, want nil", got, err)
	}
}

// TestKernelArguments: seven, in the order of PRIOR in cuda/kernels/prior.cuh.
func TestKernelArguments(t *testing.T) {
	got := langevin.Gaussian(0.5).KernelArguments(tensor.Float32, 100)
	if len(got) != 7 {
		t.Errorf("KernelArguments() has %d arguments, want 7", len(got))
	}
}
