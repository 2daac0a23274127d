// Steps of SGNHT, the stochastic-gradient Nose-Hoover thermostat, with g the gradient of U/N, h =
// rate/N, xi ~ N(0, 1), and d the number of a parameter's elements:
//
//	euler    v <- (1 - chi) v - rate g + sqrt(2 a h T) xi,  theta <- theta + v,  chi <- chi + k (v.v/(d h T) - 1)
//	badodab  v <- v - rate g;  chi <- chi + k/2 (v.v/(d h T) - 1);  theta <- theta + v/2,  v <- c v + sqrt((1 - c^2) (a/chi) h T) xi with
//	         c = e^-chi,  theta <- theta + v/2;  chi <- chi + k/2 (v.v/(d h T) - 1)
//
// chi rises by at most k c per step. If h T is 0, chi does not change.
//
// With one chi per parameter a step takes several kernels: those that move the parameters write the
// sum of v v of each tile, and sgnht_adapt updates chi. With one chi per element, and so d = 1, it
// takes one kernel.
#include "velocities.cuh"

// Adaptation is chi's change: gain (v.v/d) - loss, at most maxRise.
//
// chi is feedback: it grows while the velocities are hotter than the temperature, and shrinks
// while they are colder. It so absorbs gradient noise of unknown strength, as long as that is the
// same for all elements that share the chi.
struct Adaptation {
  double gain, loss, maxRise;
};

template <class T>
INLINE Adaptation adaptation(const Step<T>& s, double coupling, double maxExcess) {
  double equilibrium = s.h * s.temperature;
  if (equilibrium == 0) return {0, 0, 0};
  return {coupling / equilibrium, coupling, coupling * maxExcess};
}

template <class T>
INLINE T clampAbove(T x, T maxRise) {
  return x < maxRise ? x : maxRise;
}

// euler is the Euler scheme for one chi per parameter; chi enters as the friction.
template <class T>
INLINE void euler(Out<T> statistics, Out<double> squares, const Schedules<T>& schedules, const MomentumState<T>& state, InOut<T> chi, double friction) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED { return Coefficients<T>{T(1 - oneChi(chi)), s.noise(friction)}; });
  state.move(statistics, s, &squares, [&](int, T& theta, T& v, T g, T z) INLINED {
    kick(theta, v, g, z, reload(c).keep, reload(s).rate, reload(c).scale);
  });
}

// badodabKick is step B.
template <class T>
INLINE void badodabKick(Out<T> statistics, Out<double> squares, const Schedules<T>& schedules, const MomentumState<T>& state) {
  state.prefetchAll();
  state.kick(statistics, squares, schedules.step(state.prior.dataSize), [](int, int, const Quad<T>&) INLINED {});
}

// badodabDrift is steps A, O and A.
template <class T>
INLINE void badodabDrift(Out<double> squares, InOut<T> w, InOut<T> v, const Schedules<T>& schedules, InOut<T> chi, BlockRange n, unsigned stream,
                         double friction, int dataSize) {
  prefetch(n, w, v);
  const Step<T>& s = schedules.step(dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED {
    Relaxation r = relaxation(oneChi(chi), friction);
    return Coefficients<T>{T(r.keep), s.noise(r.strength)};
  });
  update(squares, n, [&](int i, int count) INLINED {
    Quad<T> theta = load(w.at(), i, count), velocity = load(v.at(), i, count), z = draw(reload(s), stream, i);
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (k < count) drift(theta.v[k], velocity.v[k], z.v[k], reload(c).keep, reload(c).scale);
    store(w.at(), i, count, theta);
    store(v.at(), i, count, velocity);
    return dot(velocity, velocity);
  });
}

// adapt updates the single chi of n velocities for the given share of a step. It runs as one block.
template <class T>
INLINE void adapt(InOut<T> chi, In<double> squares, const Schedules<T>& schedules, int n, int tiles, double share, double coupling,
                  double maxExcess, int dataSize) {
  const Step<T>& s = schedules.step(dataSize);
  double sum = 0;
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum += squares.at()[i];
  sum = blockSum(sum);
  if (threadIdx.x > 0) return;
  Adaptation change = adaptation(s, share * coupling, maxExcess);
  double adapted = oneChi(chi) + clampAbove(change.gain * (sum / n) - change.loss, change.maxRise);
  T rounded = T(adapted);
  chi.at()[0] = rounded;
  chi.at()[1] = T(adapted - (double)rounded);
}

// eulerElement has one chi per element and needs no second kernel: v v of the element is at hand.
template <class T>
INLINE void eulerElement(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, InOut<T> chi, double friction,
                         double coupling, double maxExcess) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  Adaptation change = adaptation(s, coupling, maxExcess);
  T scale = s.noise(friction), gain = T(change.gain), loss = T(change.loss), maxRise = T(change.maxRise), *chis = chi.at();
  state.move(statistics, s, nullptr, [&](int i, T& theta, T& v, T g, T z) INLINED {
    kick(theta, v, g, z, 1 - chis[i], reload(s).rate, scale);
    chis[i] += clampAbove(gain * (v * v) - loss, maxRise);
  });
}

template <class T>
INLINE void badodabElement(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, InOut<T> chi, double friction,
                           double coupling, double maxExcess) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  Adaptation change = adaptation(s, coupling / 2, maxExcess);
  T gain = T(change.gain), loss = T(change.loss), maxRise = T(change.maxRise), *chis = chi.at();
  state.move(statistics, s, nullptr, [&](int i, T& theta, T& v, T g, T z) INLINED {
    v = descend(v, reload(s).rate, g);
    T half = chis[i] + clampAbove(gain * (v * v) - loss, maxRise);
    Relaxation r = relaxation(half, friction);
    drift(theta, v, z, T(r.keep), reload(s).noise(r.strength));
    chis[i] = half + clampAbove(gain * (v * v) - loss, maxRise);
  });
}

#define SGNHT_ARGUMENTS(T)                                                                                                               \
  MOMENTUM_STATE(T), In<T> rates, In<T> temperatures, InOut<T> chi, Header header, BlockRange n, ENTRIES, STREAMS, double friction, double coupling, \
      double maxExcess, PRIOR(T)

#define SGNHT(T, suffix)                                                                                                           \
  UPDATE(sgnht_update_euler_##suffix, T,                                                                                           \
         (Out<double> squares, SGNHT_ARGUMENTS(T)),                                                                                \
         euler(statistics, squares, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), chi, friction))                                                \
  UPDATE(sgnht_update_badodab_##suffix, T,                                                                                         \
         (Out<double> squares, SGNHT_ARGUMENTS(T)),                                                                                \
         badodabKick(statistics, squares, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T)))                                                         \
  UPDATE(sgnht_drift_##suffix, T,                                                                                                  \
         (Out<double> squares, InOut<T> w, InOut<T> v, TABLES(T), InOut<T> chi, BlockRange n, ENTRIES, unsigned noise, double friction, \
          int dataSize),                                                                                                           \
         badodabDrift(squares, w, v, SCHEDULES_OF(T), chi, n, noise, friction, dataSize))                                          \
  KERNEL(sgnht_adapt_##suffix, 256)                                                                                                \
  (InOut<T> chi, In<double> squares, TABLES(T), int n, ENTRIES, int tiles, double share, double coupling, double maxExcess,       \
   int dataSize) {                                                                                                                 \
    adapt(chi, squares, SCHEDULES_OF(T), n, tiles, share, coupling, maxExcess, dataSize);                                         \
  }                                                                                                                                \
  UPDATE(sgnht_update_euler_element_##suffix, T,                                                                                   \
         (SGNHT_ARGUMENTS(T)),                                                                                                     \
         eulerElement(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), chi, friction, coupling, maxExcess))                            \
  UPDATE_OF(sgnht_update_badodab_element_##suffix, 1,                                                                              \
         (SGNHT_ARGUMENTS(T)),                                                                                                     \
         badodabElement(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), chi, friction, coupling, maxExcess))

SGNHT(float, f32)
SGNHT(double, f64)
