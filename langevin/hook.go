package langevin

import (
	"context"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// Hook is work on the host between two steps of a session's chains, such as a swap of temperatures.
// Its effect must depend only on the chains' states, so that a resumed run has the same bits.
type Hook interface {
	// Due reports whether OnStep must run after the given number of steps, which may be 0.
	Due(steps int) bool
	// OnStep does the work. If the context is done it may return the context's error early,
	// provided that it leaves the chains' states as they were.
	OnStep(ctx context.Context, s *graph.Session) error
}

// placeState is the name of the state that holds a chain's temperature in replica exchange, and its
// counts of swaps.
const placeState = "replica"

// checkHooks returns an error for a hook that is nil, and for a program with replica exchange
// without the hook that swaps temperatures: a Replicas, or a type that embeds one.
func checkHooks(s *graph.Session, hooks []Hook) error {
	if i := slices.Index(hooks, nil); i >= 0 {
		return errors.Errorf("langevin: run: hook %d must not be nil", i)
	}
	swaps := func(hook Hook) bool {
		_, is := hook.(interface{ isReplicas() })
		return is
	}
	if _, err := s.Program().Tensor(placeState); err == nil && !slices.ContainsFunc(hooks, swaps) {
		return errors.New("langevin: run: a program with replica exchange must run with the Replicas that Attach returned as a hook, got none")
	}
	return nil
}
