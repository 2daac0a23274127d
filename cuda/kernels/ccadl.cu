// Steps of CCAdL, the covariance-controlled adaptive Langevin thermostat, with g the gradient of
// U/N, h = rate/N, xi ~ N(0, 1) and S an estimate of the variance of g:
//
//	ccadl_update  S <- keep S + (1 - keep) (g - g')^2/2 and g' <- g, at step 0 only the latter;  v <- v - rate g;  chi <- max(chi, 0)
//	ccadl_drift   theta <- theta + v/2,  v <- c v + sqrt((1 - c^2) (a/f) h T) xi with c = e^-f, f = chi + rate N S/(2T),  theta <- theta + v/2
//
// Both write the sum of v v of each tile. After each of them sgnht_adapt updates the parameter's
// chi, as it does for SGNHT.
#include "velocities.cuh"

// ccadlKick estimates S from differences of consecutive gradients. The parameters hardly move
// between two steps, so that the true gradient nearly cancels and the noise of the two minibatches
// remains.
template <class T>
INLINE void ccadlKick(Out<T> statistics, Out<double> squares, InOut<T> chi, InOut<T> variance, InOut<T> before, const Schedules<T>& schedules,
                      const MomentumState<T>& state, double alpha) {
  state.prefetchAll();
  if (state.n.first() && oneChi(chi) < 0) chi.at()[0] = chi.at()[1] = 0;
  const Step<T>& step = schedules.step(state.prior.dataSize);
  // S starts at step 1, when there are two gradients to compare: their difference has twice the
  // variance, hence the half.
  T keep = 1, half = 0;
  if (unsigned long long t = step.number(); t > 0) {
    T all = T(t - 1) / T(t), memory = T(alpha);
    keep = all < memory ? all : memory;
    half = (1 - keep) / 2;
  }
  state.kick(statistics, squares, step, [&](int i, int count, const Quad<T>& g) INLINED {
    Quad<T> old = load(before.at(), i, count), square = load(variance.at(), i, count);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T difference = g.v[k] - old.v[k];
      square.v[k] = keep * square.v[k] + half * (difference * difference);
    }
    store(variance.at(), i, count, square);
    store(before.at(), i, count, g);
  });
}

// ChiAndGain is chi, and the factor of S in the friction f.
struct ChiAndGain {
  double chi, gain;
};

// ccadlDrift moves half a step, lets velocities relax with the friction of the thermostat plus
// that which compensates the gradient noise, and moves the other half. The friction differs by
// element, since S does; the exponential is therefore computed per element, in double.
template <class T>
INLINE void ccadlDrift(Out<double> squares, InOut<T> w, InOut<T> v, const Schedules<T>& schedules, InOut<T> chi, In<T> variance, BlockRange n,
                       unsigned stream, double friction, int dataSize) {
  prefetch(n, w, v, variance);
  const Step<T>& s = schedules.step(dataSize);
  const auto& c = once<ChiAndGain>([&]() INLINED {
    double gain = s.temperature == 0 ? 0 : (double)s.rate * (double)dataSize / (2 * (double)s.temperature);
    return ChiAndGain{oneChi(chi), gain};
  });
  update(squares, n, [&](int i, int count) INLINED {
    Quad<T> theta = load(w.at(), i, count), velocity = load(v.at(), i, count), square = load(variance.at(), i, count), z = draw(reload(s), stream, i);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (k >= count) continue;
      Relaxation r = relaxation(reload(c).chi + reload(c).gain * (double)square.v[k], friction);
      drift(theta.v[k], velocity.v[k], z.v[k], T(r.keep), reload(s).noise(r.strength));
    }
    store(w.at(), i, count, theta);
    store(v.at(), i, count, velocity);
    return dot(velocity, velocity);
  });
}

#define CCADL(T, suffix)                                                                                                          \
  UPDATE(ccadl_update_##suffix, T,                                                                                                \
         (Out<double> squares, MOMENTUM_STATE(T), In<T> rates, In<T> temperatures, InOut<T> chi, InOut<T> variance, InOut<T> before,     \
          Header header, BlockRange n, ENTRIES, STREAMS, double friction, double coupling, double maxExcess, double alpha, PRIOR(T)), \
         ccadlKick(statistics, squares, chi, variance, before, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), alpha))                            \
  UPDATE(ccadl_drift_##suffix, T,                                                                                                 \
         (Out<double> squares, InOut<T> w, InOut<T> v, TABLES(T), InOut<T> chi, In<T> variance, BlockRange n, ENTRIES, unsigned noise, \
          double friction, int dataSize),                                                                                         \
         ccadlDrift(squares, w, v, SCHEDULES_OF(T), chi, variance, n, noise, friction, dataSize))

CCADL(float, f32)
CCADL(double, f64)
