// Steps of samplers without velocities, with g the gradient of U/N, h = rate/N and xi ~ N(0, 1):
//
//	sgld        theta <- theta - rate g + sqrt(2 h T) xi
//	psgld       V <- keep V + (1 - keep) g^2,  G = 1/(lambda + sqrt V),  theta <- theta - rate G g + sqrt(2 h T) sqrt(G) xi
//	fsgld       psgld with G = 1/(lambda + V)
//
// 12 bytes of memory per parameter, and 8 more for each state; some 60 integer and 60 floating-point operations for each normal.
#include "langevin.cuh"

template <class T>
INLINE void sgld(Out<T> statistics, InOut<T> w, In<T> dw, const Schedules<T>& schedules, int n, unsigned stream, const Prior<T>& prior) {
  prefetch(n, w, dw);
  const Step<T>& step = schedules.step(prior.dataSize);
  tile(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = again(step);
    Quad<T> theta = load(w.at(), i, count), g = gradients(prior, load(dw.at(), i, count), theta), z = draw(s, stream, i);
    double statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] = descend(theta.v[k], s.rate, g.v[k]) + s.scale * z.v[k];
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// RMSPropMetric and FisherMetric are G of V.
template <class T>
struct RMSPropMetric {
  T lambda;
  INLINE T operator()(T v) const { return 1 / (lambda + math::sqrt(v)); }
};
template <class T>
struct FisherMetric {
  T damping;
  INLINE T operator()(T v) const { return 1 / (damping + v); }
};

template <class T, class Metric>
INLINE void psgld(Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, const Schedules<T>& schedules, int n, unsigned stream, T alpha, Metric metric,
                  int freezeAt, const Prior<T>& prior) {
  prefetch(n, w, dw, second);
  const Step<T>& step = schedules.step(prior.dataSize);
  tile(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = again(step);
    T keep = s.number() >= (unsigned long long)freezeAt ? T(1) : s.memory(alpha);
    Quad<T> theta = load(w.at(), i, count), g = load(dw.at(), i, count), v = load(second.at(), i, count), z = draw(s, stream, i);
    g = gradients(prior, g, theta);
    double statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      v.v[k] = averageSquare(v.v[k], keep, g.v[k]);
      T precondition = metric(v.v[k]);
      theta.v[k] = descend(theta.v[k], s.rate, precondition * g.v[k]) + s.scale * math::sqrt(precondition) * z.v[k];
    }
    store(second.at(), i, count, v);
    store(w.at(), i, count, theta);
    return statistic;
  });
}

#define SGLD(T, suffix)                                                                                                                           \
  UPDATE(sgld_update_##suffix, T)                                                                                                               \
  (Out<T> statistics, InOut<T> w, In<T> dw, TABLES(T), int n, ENTRIES, unsigned stream, PRIOR(T)) {                                               \
    sgld(statistics, w, dw, SCHEDULES_OF(T), n, stream, PRIOR_OF(T));                                                                             \
  }                                                                                                                                               \
  UPDATE(psgld_update_##suffix, T)                                                                                                              \
  (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, TABLES(T), int n, ENTRIES, unsigned stream, T alpha, T lambda, int freezeAt,         \
   PRIOR(T)) {                                                                                                                                    \
    psgld(statistics, w, dw, second, SCHEDULES_OF(T), n, stream, alpha, RMSPropMetric<T>{lambda}, freezeAt, PRIOR_OF(T));                         \
  }                                                                                                                                               \
  UPDATE(fsgld_update_##suffix, T)                                                                                                              \
  (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, TABLES(T), int n, ENTRIES, unsigned stream, T alpha, T damping, int freezeAt,        \
   PRIOR(T)) {                                                                                                                                    \
    psgld(statistics, w, dw, second, SCHEDULES_OF(T), n, stream, alpha, FisherMetric<T>{damping}, freezeAt, PRIOR_OF(T));                         \
  }

SGLD(float, f32)
SGLD(double, f64)
