// Steps of SMILE, microcanonical dynamics on minibatches, with g the gradient of U/N, h = rate/N,
// xi ~ N(0, 1), and d the number of a parameter's elements:
//
//	smile_update  v <- v - rate g;  writes the sum of v v of each tile
//	smile_turn    r = sqrt((d - 1) h T/v.v), 1 where h T is 0:  one block
//	smile_drift   v <- r v,  theta <- theta + q v/2,  v <- c v + sqrt((1 - c^2) h T) xi,  theta <- theta + q v/2,  c = e^-a,  q = 2r/(1+r)
#include "velocities.cuh"

// rescale computes the factor r that gives the velocities the norm sqrt((d - 1) h T).
template <class T>
INLINE void rescale(Out<double> r, In<double> squares, const Schedules<T>& schedules, int n, int tiles, int dataSize) {
  const Step<T>& s = schedules.step(dataSize);
  double sum = 0;
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum += squares.at()[i];
  sum = blockSum(sum);
  if (threadIdx.x > 0) return;
  double length = (double)(n - 1) * s.h * (double)s.temperature;
  r.at()[0] = length > 0 && sum > 0 ? math::sqrt(length / sum) : 1;
}

// RescaledDrift is the velocities' coefficients, their rescaling r, and half of q.
template <class T>
struct RescaledDrift {
  Coefficients<T> c;
  T r, half;
};

template <class T>
INLINE void rescaledDrift(Out<double> squares, InOut<T> w, InOut<T> v, const Schedules<T>& schedules, In<double> factor, BlockRange n, unsigned stream,
                        double friction, int dataSize) {
  prefetch(n, w, v);
  const Step<T>& s = schedules.step(dataSize);
  const auto& c = once<RescaledDrift<T>>([&]() INLINED {
    Relaxation relaxed = relaxation(friction, friction);
    double r = factor.at()[0];
    return RescaledDrift<T>{{T(relaxed.keep), s.noise(relaxed.strength)}, T(r), T(r / (1 + r))};
  });
  update(squares, n, [&](int i, int count) INLINED {
    Quad<T> theta = load(w.at(), i, count), velocity = load(v.at(), i, count), z = draw(reload(s), stream, i);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (k >= count) continue;
      T old = reload(c).r * velocity.v[k];
      velocity.v[k] = reload(c).c.keep * old + reload(c).c.scale * z.v[k];
      theta.v[k] += reload(c).half * (old + velocity.v[k]);
    }
    store(w.at(), i, count, theta);
    store(v.at(), i, count, velocity);
    return dot(velocity, velocity);
  });
}

#define SMILE(T, suffix)                                                                                                           \
  UPDATE(smile_update_##suffix, T,                                                                                                 \
         (Out<double> squares, MOMENTUM_STATE(T), In<T> rates, In<T> temperatures, Header header, BlockRange n, ENTRIES, STREAMS,              \
          double friction, PRIOR(T)),                                                                                              \
         (MOMENTUM_STATE_OF(T)).prefetchAll(); MOMENTUM_STATE_OF(T).kick(statistics, squares, SCHEDULES_OF(T).step(dataSize), [](int, int,       \
          const Quad<T>&) INLINED {}))                                                                                             \
  KERNEL(smile_turn_##suffix, 256)                                                                                                 \
  (Out<double> r, In<double> squares, TABLES(T), int n, ENTRIES, int tiles, int dataSize) {                                        \
    rescale(r, squares, SCHEDULES_OF(T), n, tiles, dataSize);                                                                         \
  }                                                                                                                                \
  UPDATE(smile_drift_##suffix, T,                                                                                                  \
         (Out<double> squares, InOut<T> w, InOut<T> v, TABLES(T), In<double> r, BlockRange n, ENTRIES, unsigned noise, double friction, \
          int dataSize),                                                                                                           \
         rescaledDrift(squares, w, v, SCHEDULES_OF(T), r, n, noise, friction, dataSize))

SMILE(float, f32)
SMILE(double, f64)
