// The slopes and energies of priors, as langevin/slope.go and langevin/potential.go have them.
#pragma once
#include "math.cuh"
#include "quad.cuh"

namespace pollen {

// The families, numbered as langevin.PriorKind.
enum PriorFamily { flatPrior, gaussianPrior, laplacePrior, studentTPrior, scaleMixturePrior };

// Prior gives the gradient of U/N, dw plus the slope of the prior over N.
template <class T>
struct Prior {
  int family;
  T strength, spread;
  double narrow, odds, bend;
  int dataSize;

  // withSlope is f(s), s(dw, theta) being the family's gradient: the branch between families is around all that f does.
  template <class F>
  INLINE auto withSlope(F f) const {
    switch (family) {
      case laplacePrior:
        return f([&](T dw, T theta) INLINED { return dw + strength * (theta == 0 ? T(0) : math::copySign(T(1), theta)); });
      case studentTPrior:
        return f([&](T dw, T theta) INLINED { return dw + strength * theta / (spread + theta * theta); });
      case scaleMixturePrior:
        return f([&](T dw, T theta) INLINED {
          double x = theta, q = math::exp(odds - bend * x * x);
          return dw + T(x * (strength + narrow * q) / (1 + q));
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

  // curvature is the slope's derivative by theta, see langevin/priorcurvature.go.
  INLINE double curvature(double theta) const {
    double wide = strength, square = theta * theta;
    switch (family) {
      case laplacePrior:
        return 0;
      case studentTPrior: {
        double sum = (double)spread + square;
        return wide * ((double)spread - square) / (sum * sum);
      }
      case scaleMixturePrior: {
        double p = 1 / (1 + math::exp(bend * square - odds));
        return wide + (narrow - wide) * p * (1 - 2 * bend * square * (1 - p));
      }
      default:
        return wide;
    }
  }
};

}  // namespace pollen

// A kernel's arguments for a prior, and the prior of them.
#define PRIOR(T) int family, T strength, T spread, double narrow, double odds, double bend, int dataSize
#define PRIOR_OF(T) (Prior<T>{family, strength, spread, narrow, odds, bend, dataSize})
