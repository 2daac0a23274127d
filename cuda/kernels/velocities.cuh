// The frame of samplers with velocities (momentum), see langevin/momentum.go.
#pragma once
#include "langevin.cuh"

namespace pollen {

// Relaxation is the exact solution of the Ornstein-Uhlenbeck process dv = -friction v dt + sqrt(2
// noise h T) dW over a time of 1: v becomes keep v plus noise of this strength.
struct Relaxation {
  double keep, strength;
};

// relaxation returns e^-friction and the strength noise (1 - e^(-2 friction)) / (2 friction), whose
// limits at friction 0 are 1 and noise.
INLINE Relaxation relaxation(double friction, double noise) {
  if (friction == 0) return {1, noise};
  return {math::exp(-friction), noise * -math::expm1(-2 * friction) / (2 * friction)};
}

// Coefficients of an update v <- keep v + scale z.
template <class T>
struct Coefficients {
  T keep, scale;
};

// oneChi returns a parameter's thermostat variable, which is stored as a rounded number and the
// rest.
template <class T>
INLINE double oneChi(InOut<T> chi) {
  return (double)chi.at()[0] + (double)chi.at()[1];
}

// MomentumState is a parameter, its velocities, and what moves them.
template <class T>
struct MomentumState {
  InOut<T> w;
  In<T> dw;
  InOut<T> v;
  BlockRange n;
  unsigned noise, start;  // streams
  Prior<T> prior;

  INLINE void prefetchAll() const { prefetch(n, w, dw, v); }

  // velocities returns the velocities of elements i to i + 3. At step 0 they are drawn from N(0, h
  // T), unless the temperature is 0.
  INLINE Quad<T> velocities(const Step<T>& s, int i, int count) const {
    if (s.number() > 0 || !(s.temperature > 0)) return load(v.at(), i, count);
    Quad<T> z = draw(s, start, i);
    T scale = s.noise(0.5);
#pragma unroll
    for (int k = 0; k < 4; k++) z.v[k] = k < count ? scale * z.v[k] : T(0);
    return z;
  }

  // move calls rule(i, theta, v, g, z), which updates one element and its velocity, then then(s, i,
  // theta) for each four elements. It writes each tile's sum of theta g and, if squares is set, of
  // v v after the update.
  template <class Rule, class Then>
  INLINE void move(Out<T> statistics, const Step<T>& step, const Out<double>* squares, Rule rule, Then then) const {
    tiles(n, [&](int tile) INLINED {
      T square = 0;
      double sum = tileSum(n, tile, [&](int i, int count) INLINED {
        const Step<T>& s = reload(step);
        Quad<T> theta = load(w.at(), i, count), g = load(dw.at(), i, count), velocity = velocities(s, i, count), z = draw(s, noise, i);
        g = prior.gradient(g, theta);
        T statistic = dot(theta, g);
#pragma unroll
        for (int k = 0; k < 4; k++) {
          if (k < count) rule(i + k, theta.v[k], velocity.v[k], g.v[k], z.v[k]);
        }
        then(s, i, theta);
        if (squares) square += dot(velocity, velocity);
        store(w.at(), i, count, theta);
        store(v.at(), i, count, velocity);
        return statistic;
      });
      storeTile(statistics, tile, sum);
      if (squares) storeTile(*squares, tile, blockSumAs<double>(square));
    });
  }

  template <class Rule>
  INLINE void move(Out<T> statistics, const Step<T>& step, const Out<double>* squares, Rule rule) const {
    move(statistics, step, squares, rule, [](const Step<T>&, int, Quad<T>&) INLINED {});
  }

  // kick is v <- v - rate g, where learn(i, count, g) receives the gradients. It writes each tile's
  // sum of theta g and, in squares, of v v after the update.
  template <class Learn>
  INLINE void kick(Out<T> statistics, Out<double> squares, const Step<T>& step, Learn learn) const {
    tiles(n, [&](int tile) INLINED {
      T square = 0;
      double sum = tileSum(n, tile, [&](int i, int count) INLINED {
        const Step<T>& s = reload(step);
        Quad<T> theta = load(w.at(), i, count), g = prior.gradient(load(dw.at(), i, count), theta), velocity = velocities(s, i, count);
        learn(i, count, g);
#pragma unroll
        for (int k = 0; k < 4; k++) velocity.v[k] = descend(velocity.v[k], s.rate, g.v[k]);
        square += dot(velocity, velocity);
        store(v.at(), i, count, velocity);
        return dot(theta, g);
      });
      storeTile(statistics, tile, sum);
      storeTile(squares, tile, blockSumAs<double>(square));
    });
  }
};

// kick is v <- keep v - rate g + scale z, then theta <- theta + v.
template <class T>
INLINE void kick(T& theta, T& v, T g, T z, T keep, T rate, T scale) {
  v = descend(keep * v, rate, g) + scale * z;
  theta += v;
}

// drift is theta <- theta + fraction v, v <- keep v + scale z, theta <- theta + fraction v: the
// steps A, O and A of a splitting.
template <class T>
INLINE void drift(T& theta, T& v, T z, T keep, T scale, T fraction = T(0.5)) {
  T old = v;
  v = keep * old + scale * z;
  theta += fraction * (old + v);
}

}  // namespace pollen

// MOMENTUM_STATE and STREAMS declare a kernel's arguments for a MomentumState; MOMENTUM_STATE_OF
// makes it of them.
#define MOMENTUM_STATE(T) Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> v
#define STREAMS unsigned noise, unsigned start
#define MOMENTUM_STATE_OF(T) (MomentumState<T>{w, dw, v, n, noise, start, PRIOR_OF(T)})
