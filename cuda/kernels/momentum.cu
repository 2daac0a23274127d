// Steps of samplers with velocities (momentum), with g the gradient of U/N, h = rate/N, and xi, eta
// ~ N(0, 1):
//
//	sghmc v <- (1 - a) v - rate g + sqrt(2 (a - b) h T) xi,  theta <- theta + v
//	baoab v <- v - rate g,  theta <- theta + v/2,  v <- c v + sqrt((1 - c^2) h T) xi with c = e^-a,  theta <- theta + v/2
//	ubu   v <- v - rate g,  theta <- theta + k v,  v <- c v + sqrt((1 - c^2) h T) xi,  theta <- theta + k v + sqrt(r h T) eta
//	matched_baoab as baoab, with the rate times the factor that friction_factor computes
//	obabo v <- c v - (1 + c)/2 rate g + sqrt((1 - c^2) h T) xi,  theta <- theta + v
//
// and the kinetic temperature of the velocities times their number. An update moves 20 bytes of
// memory per parameter.
#include "velocities.cuh"

// friction is a, estimate b, the part of the noise that minibatches are expected to add.
template <class T>
INLINE void sghmc(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, double friction, double estimate) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED { return Coefficients<T>{T(1 - friction), s.noise(friction - estimate)}; });
  state.move(statistics, s, nullptr, [&](int, T& theta, T& v, T g, T z) INLINED { kick(theta, v, g, z, reload(c).keep, reload(s).rate, reload(c).scale); });
}

// baoab makes a whole B, in which the halves of two neighbouring steps are merged, followed by A, O
// and A.
template <class T>
INLINE void baoab(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, double friction) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED {
    Relaxation r = relaxation(friction, friction);
    return Coefficients<T>{T(r.keep), s.noise(r.strength)};
  });
  state.move(statistics, s, nullptr, [&](int, T& theta, T& v, T g, T z) INLINED {
    v = descend(v, reload(s).rate, g);
    drift(theta, v, z, reload(c).keep, reload(c).scale);
  });
}

// ForceCoefficients are the fraction of the velocities that is kept, and the scales of the force
// and of the noise.
template <class T>
struct ForceCoefficients {
  T keep, rate, scale;
};

// matchedBAOAB is baoab with the force multiplied by a factor, of MatchedFriction.
template <class T>
INLINE void matchedBAOAB(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, In<T> factor, double friction) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<ForceCoefficients<T>>([&]() INLINED {
    Relaxation r = relaxation(friction, friction);
    return ForceCoefficients<T>{T(r.keep), s.rate * factor.at()[0], s.noise(r.strength)};
  });
  state.move(statistics, s, nullptr, [&](int, T& theta, T& v, T g, T z) INLINED {
    v = descend(v, reload(c).rate, g);
    drift(theta, v, z, reload(c).keep, reload(c).scale);
  });
}

// frictionFactor computes 1 + (1 - keep) g.v/(rate g.g), the factor of the force with friction along
// the gradient, keep = sqrt(1 - share), 0 where that is not real, and share = noise rate N g.g/T.
template <class T>
INLINE void frictionFactor(Out<T> y, In<T> along, In<T> squares, const Schedules<T>& schedules, int dataSize, double noise) {
  const Step<T>& s = schedules.step(dataSize);
  if (first() > 0) return;
  double rate = s.rate, temperature = s.temperature, square = squares.at()[0], factor = 1, share = 0;
  if (temperature > 0 && rate * square > 0) {
    share = noise * rate * dataSize * square / temperature;
    double keep = share < 1 ? math::sqrt(1 - share) : 0;
    factor = 1 + (1 - keep) * (double)along.at()[0] / (rate * square);
  }
  y.at()[0] = T(factor);
  y.at()[1] = T(share);
}

// UBUCoefficients are the velocities' coefficients, the fraction k of them by which theta moves,
// and the scale of theta's own noise.
template <class T>
struct UBUCoefficients {
  Coefficients<T> c;
  T fraction, spread;
};

// ubu needs two normals per element, of two streams. At step 0 the second stream has drawn the
// first velocities, and theta gets no noise of its own; a later step has another address.
template <class T>
INLINE void ubu(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, double friction, double fraction, double wander) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<UBUCoefficients<T>>([&]() INLINED {
    Relaxation r = relaxation(friction, friction);
    return UBUCoefficients<T>{{T(r.keep), s.noise(r.strength)}, T(fraction), s.number() > 0 ? s.noise(wander / 2) : T(0)};
  });
  unsigned stream = state.start;  // draws the first velocities at step 0, and is free afterwards
  state.move(
      statistics, s, nullptr,
      [&](int, T& theta, T& v, T g, T z) INLINED {
        v = descend(v, reload(s).rate, g);
        drift(theta, v, z, reload(c).c.keep, reload(c).c.scale, reload(c).fraction);
      },
      [&](const Step<T>& step, int i, Quad<T>& theta) INLINED {
        Quad<T> eta = draw(step, stream, i);
#pragma unroll
        for (int k = 0; k < 4; k++) theta.v[k] += reload(c).spread * eta.v[k];
      });
}

// obabo merges the halves of O and of B that two neighbouring steps have in common, so that a step
// reads every element once.
template <class T>
INLINE void obabo(Out<T> statistics, const Schedules<T>& schedules, const MomentumState<T>& state, double friction) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& k = once<ForceCoefficients<T>>([&]() INLINED {
    Relaxation r = relaxation(friction, friction);
    return ForceCoefficients<T>{T(r.keep), T((1 + r.keep) / 2) * s.rate, s.noise(r.strength)};
  });
  state.move(statistics, s, nullptr, [&](int, T& theta, T& v, T g, T z) INLINED {
    kick(theta, v, g, z, reload(k).keep, reload(k).rate, reload(k).scale);
  });
}

// rateBefore returns the step size of the step before, 0 at the first step.
template <class T>
INLINE double rateBefore(In<T> rates, Header header, int entries) {
  unsigned long long step = stepOf(header);
  return step > 0 ? (double)entry(rates, entries, step - 1) : 0;
}

// kinetic computes mass/h times the sum of v v, where h is the step size of the step before; 0 at
// the first step.
template <class T>
INLINE void kinetic(Out<T> y, In<T> v, In<T> rates, Header header, BlockRange n, int entries, T mass, int dataSize) {
  double rate = rateBefore(rates, header, entries);
  tiles(n, [&](int tile) INLINED {
    double sum = rate == 0 ? 0 : tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<T> velocity = load(v.at(), i, count);
      return dot(velocity, velocity);
    });
    storeTile(y, tile, rate == 0 ? 0 : sum * (double)mass * dataSize / rate);
  });
}

// kickedKinetic computes 1/(2 h) times the sum of v v before and after the step's force, likewise.
template <class T>
INLINE void kickedKinetic(Out<T> y, In<T> v, In<T> w, In<T> dw, In<T> rates, Header header, BlockRange n, int entries, const Prior<T>& prior) {
  double before = rateBefore(rates, header, entries);
  T rate = entry(rates, entries, stepOf(header));
  tiles(n, [&](int tile) INLINED {
    double sum = before == 0 ? 0 : tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<T> velocity = load(v.at(), i, count), g = prior.gradient(load(dw.at(), i, count), load(w.at(), i, count)), kicked = velocity;
#pragma unroll
      for (int k = 0; k < 4; k++) kicked.v[k] = descend(velocity.v[k], rate, g.v[k]);
      return dot(velocity, velocity) + dot(kicked, kicked);
    });
    storeTile(y, tile, before == 0 ? 0 : sum / 2 * prior.dataSize / before);
  });
}

#define MOMENTUM(T, suffix)                                                                                          \
  UPDATE(sghmc_update_##suffix, T,                                                                                   \
         (MOMENTUM_STATE(T), TABLES(T), BlockRange n, ENTRIES, STREAMS, double friction, double estimate, PRIOR(T)),             \
         sghmc(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), friction, estimate))                                      \
  UPDATE(baoab_update_##suffix, T,                                                                                   \
         (MOMENTUM_STATE(T), TABLES(T), BlockRange n, ENTRIES, STREAMS, double friction, PRIOR(T)),                              \
         baoab(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), friction))                                                \
  UPDATE(matched_baoab_update_##suffix, T,                                                                                 \
         (MOMENTUM_STATE(T), In<T> rates, In<T> temperatures, In<T> factor, Header header, BlockRange n, ENTRIES, STREAMS,               \
          double friction, PRIOR(T)),                                                                                                    \
         matchedBAOAB(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), factor, friction))                                                \
  KERNEL(friction_factor_fwd_##suffix, 256)(Out<T> y, In<T> along, In<T> squares, TABLES(T), ENTRIES, int dataSize, double noise) {           \
    frictionFactor(y, along, squares, SCHEDULES_OF(T), dataSize, noise);                                                                   \
  }                                                                                                                                 \
  UPDATE(ubu_update_##suffix, T,                                                                                     \
         (MOMENTUM_STATE(T), TABLES(T), BlockRange n, ENTRIES, STREAMS, double friction, double fraction, double wander, PRIOR(T)), \
         ubu(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), friction, fraction, wander))                                   \
  UPDATE(obabo_update_##suffix, T,                                                                                   \
         (MOMENTUM_STATE(T), TABLES(T), BlockRange n, ENTRIES, STREAMS, double friction, PRIOR(T)),                              \
         obabo(statistics, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), friction))                                                \
  UPDATE(kinetic_fwd_##suffix, T,                                                                                    \
         (Out<T> y, In<T> v, In<T> rates, Header header, BlockRange n, int entries, T mass, int dataSize),                \
         kinetic(y, v, rates, header, n, entries, mass, dataSize))                                                   \
  UPDATE(kicked_kinetic_fwd_##suffix, T,                                                                             \
         (Out<T> y, In<T> v, In<T> w, In<T> dw, In<T> rates, Header header, BlockRange n, int entries, PRIOR(T)),         \
         kickedKinetic(y, v, w, dw, rates, header, n, entries, PRIOR_OF(T)))

MOMENTUM(float, f32)
MOMENTUM(double, f64)
