// Steps of samplers without velocities, with g the gradient of U/N, h = rate/N and xi ~ N(0, 1):
//
//	sgld        theta <- theta - rate g + sqrt(2 h T) xi
//	psgld       V <- keep V + (1 - keep) g^2,  G = 1/(lambda + sqrt V),  theta <- theta - rate G g + sqrt(2 h T) sqrt(G) xi
//	fsgld       psgld with G = 1/(lambda + V)
//
// An update moves 12 bytes of memory per parameter, and 8 more for each state; a normal takes some
// 60 integer and 60 floating-point operations. This file is the simplest example of an update
// kernel: see update.cuh for its parts.
#include "langevin.cuh"

// sgld loads parameter and gradient, adds the prior's gradient, draws the noise of the elements'
// address, and stores the parameter: one pass over memory.
template <class T>
INLINE void sgld(Out<T> statistics, InOut<T> w, In<T> dw, const Schedules<T>& schedules, BlockRange n, unsigned stream, const Prior<T>& prior) {
  prefetch(n, w, dw);
  const Step<T>& step = schedules.step(prior.dataSize);
  update(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = reload(step);
    Quad<T> theta = load(w.at(), i, count), g = prior.gradient(load(dw.at(), i, count), theta);
    Quad<T> z = draw(s, stream, i);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] = descend(theta.v[k], s.rate, g.v[k]) + s.scale * z.v[k];
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// RMSPropMetric and FisherMetric compute G from V. If V is in the range of math::Fast, so are their
// intermediate results.
template <class T>
struct RMSPropMetric {
  T lambda;
  template <class Math>
  INLINE T at(T v) const {
    return Math::reciprocal(lambda + Math::sqrt(v));
  }
};
template <class T>
struct FisherMetric {
  T lambda;
  template <class Math>
  INLINE T at(T v) const {
    return Math::reciprocal(lambda + v);
  }
};

// psgld scales step and noise by G. A weight with large gradients moves in small steps, and with
// little noise, so that all weights mix at a similar pace; the stationary distribution stays the
// same as far as G changes slowly (psgldgamma.cu has the correction for what remains).
template <class T, class Metric>
INLINE void psgld(Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, const Schedules<T>& schedules, BlockRange n, unsigned stream, T alpha,
                  Metric metric, int freezeAt, const Prior<T>& prior) {
  prefetch(n, w, dw, second);
  const Step<T>& step = schedules.step(prior.dataSize);
  const T& memory = once<T>([&]() INLINED { return step.number() >= (unsigned long long)freezeAt ? T(1) : step.memory(alpha); });
  update(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = reload(step);
    T keep = reload(memory);
    Quad<T> theta = load(w.at(), i, count), g = load(dw.at(), i, count), v = load(second.at(), i, count);
    g = prior.gradient(g, theta);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) v.v[k] = averageSquare(v.v[k], keep, g.v[k]);
    Quad<T> z = draw(s, stream, i);
    auto move = [&](auto arithmetic) INLINED {
      using Math = decltype(arithmetic);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        T precondition = metric.template at<Math>(v.v[k]);
        theta.v[k] = descend(theta.v[k], s.rate, precondition * g.v[k]) + s.scale * Math::sqrt(precondition) * z.v[k];
      }
    };
    // The fast functions give the same bits, within their range.
    if constexpr (sizeof(T) == 4) {
      if (metric.lambda < 0x1p96f && math::inFastRange(v.v[0], v.v[1], v.v[2], v.v[3]))
        move(math::Fast());
      else
        move(math::Exact());
    } else {
      move(math::Exact());
    }
    store(second.at(), i, count, v);
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// The three kernels differ in their rule only. UPDATE makes a kernel of each that serves several
// parameters in one launch: a network has many small ones, and a launch takes some microseconds.
#define SGLD(T, suffix)                                                                                                        \
  UPDATE(sgld_update_##suffix, T,                                                                                              \
         (Out<T> statistics, InOut<T> w, In<T> dw, TABLES(T), BlockRange n, ENTRIES, unsigned stream, PRIOR(T)),                    \
         sgld(statistics, w, dw, SCHEDULES_OF(T), n, stream, PRIOR_OF(T)))                                                     \
  UPDATE(psgld_update_##suffix, T,                                                                                             \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, TABLES(T), BlockRange n, ENTRIES, unsigned stream, T alpha,     \
          T lambda, int freezeAt, PRIOR(T)),                                                                                   \
         psgld(statistics, w, dw, second, SCHEDULES_OF(T), n, stream, alpha, RMSPropMetric<T>{lambda}, freezeAt, PRIOR_OF(T))) \
  UPDATE(fsgld_update_##suffix, T,                                                                                             \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, TABLES(T), BlockRange n, ENTRIES, unsigned stream, T alpha,     \
          T damping, int freezeAt, PRIOR(T)),                                                                                  \
         psgld(statistics, w, dw, second, SCHEDULES_OF(T), n, stream, alpha, FisherMetric<T>{damping}, freezeAt, PRIOR_OF(T)))

SGLD(float, f32)
SGLD(double, f64)
