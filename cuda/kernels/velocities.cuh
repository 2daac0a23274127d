// What samplers with velocities have in common, see langevin/momentum.go.
#pragma once
#include "langevin.cuh"

namespace pollen {

// Relaxation is the exact solution of dv = -friction v dt + sqrt(2 noise h T) dW over a time of 1: v keeps a share, and gets noise of that strength.
struct Relaxation {
  double keep, strength;
};

INLINE Relaxation relaxation(double friction, double noise) {
  if (friction == 0) return {1, noise};
  return {math::exp(-friction), noise * -math::expm1(-2 * friction) / (2 * friction)};
}

// Coefficients of velocities: what they keep, and the scale of their noise.
template <class T>
struct Coefficients {
  T keep, scale;
};

// oneChi is the thermostat of a parameter: it is kept rounded, with the rest.
template <class T>
INLINE double oneChi(InOut<T> chi) {
  return (double)chi.at()[0] + (double)chi.at()[1];
}

// Walkers is a parameter with its velocities, and what moves them.
template <class T>
struct MomentumState {
  InOut<T> w;
  In<T> dw;
  InOut<T> v;
  BlockRange n;
  unsigned noise, start;  // streams
  Prior<T> prior;

  INLINE void prefetchAll() const { prefetch(n, w, dw, v); }

  // velocities are those of elements i to i+3. At step 0 they are draws from N(0, h T), but for temperature 0.
  INLINE Quad<T> velocities(const Step<T>& s, int i, int count) const {
    if (s.number() > 0 || !(s.temperature > 0)) return load(v.at(), i, count);
    Quad<T> z = draw(s, start, i);
    T scale = s.noise(0.5);
#pragma unroll
    for (int k = 0; k < 4; k++) z.v[k] = k < count ? scale * z.v[k] : T(0);
    return z;
  }

  // move lets rule(i, theta, v, g, z) change a parameter and its velocity, and then(s, i, theta) four parameters, and leaves the sums of theta g and, in
  // squares if there are any, of v v after it.
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

  // kick is v <- v - rate g, in which learn(i, count, g) sees the gradients. It leaves the sums of theta g and, in squares, of v v after it.
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

// kick is v <- keep v - rate g + scale z, theta <- theta + v.
template <class T>
INLINE void kick(T& theta, T& v, T g, T z, T keep, T rate, T scale) {
  v = descend(keep * v, rate, g) + scale * z;
  theta += v;
}

// drift is theta <- theta + share v, v <- keep v + scale z, theta <- theta + share v.
template <class T>
INLINE void drift(T& theta, T& v, T z, T keep, T scale, T fraction = T(0.5)) {
  T old = v;
  v = keep * old + scale * z;
  theta += fraction * (old + v);
}

}  // namespace pollen

// A kernel's arguments for walkers, and the walkers of them.
#define MOMENTUM_STATE(T) Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> v
#define STREAMS unsigned noise, unsigned start
#define MOMENTUM_STATE_OF(T) (MomentumState<T>{w, dw, v, n, noise, start, PRIOR_OF(T)})
