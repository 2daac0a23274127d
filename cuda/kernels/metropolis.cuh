// The state words of a chain with a Metropolis test, numbered as in mcmc/decide.go, and what
// follows from a decision.
#pragma once
#include "update.cuh"

namespace pollen {

enum ChainWord { wordStep, wordPotential, wordAccepted, wordProbability, wordLogStep, wordLogAverage, wordDeficit, wordEnergy, chainWords };

// ProposalSchedule determines at which steps a proposal starts, and at which it is accepted or
// rejected. A proposal takes evaluations steps, each of which evaluates the gradient; the step that
// decides on one proposal starts the next one, unless paired is set: then even steps start and odd
// steps decide.
struct ProposalSchedule {
  int evaluations;
  bool paired;

  INLINE bool starts(unsigned long long step) const { return step % evaluations == 0; }
  INLINE bool decides(unsigned long long step) const { return paired ? step % 2 == 1 : step > 0 && starts(step); }
  INLINE int decided(unsigned long long step) const { return (int)((step + (paired ? 1 : 0)) / evaluations); }
};

// acceptOrReject carries out the decision: either the position becomes the parameter, or the
// parameter returns to the position.
INLINE void acceptOrReject(bool accepted, Quad<double>& w, Quad<double>& position) {
  if (accepted)
    position = w;
  else
    w = position;
}

INLINE Quad<double> wide(const Quad<float>& z) { return {{z.v[0], z.v[1], z.v[2], z.v[3]}}; }

}  // namespace pollen
