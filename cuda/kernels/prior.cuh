// Gradients and curvatures of log priors, as in langevin/priorterm.go.
#pragma once
#include "math.cuh"
#include "quad.cuh"
#include "reduce.cuh"

namespace pollen {

// The families, numbered as in langevin.PriorKind.
enum PriorFamily { flatPrior, gaussianPrior, laplacePrior, studentTPrior, scaleMixturePrior };

// Mixture has the constants of the scale mixture. They lie in shared memory, since no other family
// needs them.
struct Mixture {
  double narrow, odds, bend;
};

INLINE const Mixture& mixtureOf(double narrow, double odds, double bend) {
  return once<Mixture>([=]() INLINED { return Mixture{narrow, odds, bend}; });
}

// Prior computes the gradient of U/N: dw plus the prior's slope over N.
//
// The arguments are those of langevin.Prior, prepared on the host: strength is the slope's factor
// over N, such as 1/(sigma^2 N) for a Gaussian; spread is nu s^2 for Student's t.
template <class T>
struct Prior {
  int family;
  T strength, spread;
  const Mixture& mixture;
  int dataSize;

  // withSlope returns f(s), where s(dw, theta) is the gradient for the prior's family. The switch
  // over families is outside of everything that f does, loops included.
  template <class F>
  INLINE auto withSlope(F f) const {
    switch (family) {
      case laplacePrior:
        return f([&](T dw, T theta) INLINED { return dw + strength * (theta == 0 ? T(0) : math::copySign(T(1), theta)); });
      case studentTPrior:
        return f([&](T dw, T theta) INLINED { return dw + strength * theta / (spread + theta * theta); });
      case scaleMixturePrior:
        return f([&](T dw, T theta) INLINED {
          const Mixture& m = reload(mixture);
          double x = theta, q = math::exp(m.odds - m.bend * x * x);
          return dw + T(x * (strength + m.narrow * q) / (1 + q));
        });
      default:
        return f([&](T dw, T theta) INLINED { return dw + strength * theta; });
    }
  }

  INLINE T gradient(T dw, T theta) const {
    return withSlope([&](auto slope) INLINED { return slope(dw, theta); });
  }

  INLINE Quad<T> gradient(const Quad<T>& dw, const Quad<T>& theta) const {
    return withSlope([&](auto slope) INLINED { return each<T>(slope, dw, theta); });
  }

  // withCurvature returns f(c), where c(theta) is the derivative of the family's slope by theta,
  // see langevin/priorcurvature.go.
  template <class F>
  INLINE auto withCurvature(F f) const {
    double wide = strength;
    switch (family) {
      case laplacePrior:
        return f([&](double) INLINED { return 0.0; });
      case studentTPrior:
        return f([&](double theta) INLINED {
          double square = theta * theta, sum = (double)spread + square;
          return wide * ((double)spread - square) / (sum * sum);
        });
      case scaleMixturePrior:
        return f([&](double theta) INLINED {
          const Mixture& m = reload(mixture);
          double square = theta * theta, p = 1 / (1 + math::exp(m.bend * square - m.odds));
          return wide + (m.narrow - wide) * p * (1 - 2 * m.bend * square * (1 - p));
        });
      default:
        return f([&](double) INLINED { return wide; });
    }
  }

  INLINE double curvature(double theta) const {
    return withCurvature([&](auto of) INLINED { return of(theta); });
  }

  INLINE Quad<T> curvature(const Quad<T>& theta) const {
    return withCurvature([&](auto of) INLINED { return each<T>([&](T v) INLINED { return T(of(v)); }, theta); });
  }
};

}  // namespace pollen

// PRIOR declares a kernel's arguments for a prior; PRIOR_OF makes the Prior of them.
#define PRIOR(T) int family, T strength, T spread, double narrow, double odds, double bend, int dataSize
#define PRIOR_OF(T) (Prior<T>{family, strength, spread, mixtureOf(narrow, odds, bend), dataSize})
