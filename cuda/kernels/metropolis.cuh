// The words of a chain under Metropolis, numbered as in metropolis/decide.go, and what was decided.
#pragma once
#include "update.cuh"

namespace pollen {

enum ChainWord { wordStep, wordPotential, wordAccepted, wordProbability, wordLogStep, wordLogAverage, wordDeficit, chainWords };

// Rhythm says at which steps a proposal starts, and at which it is decided on.
struct ProposalSchedule {
  int evaluations;
  bool paired;

  INLINE bool starts(unsigned long long step) const { return step % evaluations == 0; }
  INLINE bool decides(unsigned long long step) const { return paired ? step % 2 == 1 : step > 0 && starts(step); }
  INLINE int decided(unsigned long long step) const { return (int)((step + (paired ? 1 : 0)) / evaluations); }
};

// settle carries out what was decided: the position becomes the parameter, or the other way round.
INLINE void acceptOrReject(bool accepted, Quad<double>& w, Quad<double>& position) {
  if (accepted)
    position = w;
  else
    w = position;
}

INLINE Quad<double> wide(const Quad<float>& z) { return {{z.v[0], z.v[1], z.v[2], z.v[3]}}; }

}  // namespace pollen
