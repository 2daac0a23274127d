// pSGLD with the correction Gamma, h T dG/dtheta, with g the gradient of U/N, h = rate/N and d the
// diagonal of its Hessian:
//
//	D <- keep D + 2 (1 - keep) g d,  V <- keep V + (1 - keep) g^2,  G = 1/(lambda + sqrt V)
//	theta <- theta - rate G g + sqrt(2 h T) sqrt(G) xi + h T dG/dtheta,  dG/dtheta = -D G^2/(2 sqrt V)
//
// The correction is 0 where V is 0, and until keep has reached alpha. The file also has sums of
// gradients over steps, for control variates.
#include "langevin.cuh"

// gammaOf is dG/dtheta by the chain rule, with dv the derivative of V: G depends on theta through
// V only, and V through the squares of gradients that it remembers.
template <class T>
INLINE T gammaOf(T v, T dv, T lambda) {
  if (v == 0) return 0;
  T root = math::sqrt(v), sum = lambda + root;
  return -dv / (2 * root * (sum * sum));
}

template <class T>
INLINE void psgldGamma(Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, InOut<T> secondSlope, In<T> diagonal, const Schedules<T>& schedules,
                       BlockRange n, unsigned stream, T alpha, T lambda, const Prior<T>& prior) {
  prefetch(n, w, dw, second, secondSlope, diagonal);
  const Step<T>& step = schedules.step(prior.dataSize);
  update(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = reload(step);
    // Gamma begins when V has its full memory: with V of few gradients the estimate threw weights
    // hundreds of noise deviations far.
    T keep = s.memory(alpha), drift = keep == alpha ? T(s.h * s.temperature) : T(0);
    Quad<T> theta = load(w.at(), i, count), g = prior.gradient(load(dw.at(), i, count), theta), z = draw(s, stream, i);
    Quad<T> v = load(second.at(), i, count), dv = load(secondSlope.at(), i, count), d = load(diagonal.at(), i, count);
    Quad<T> curvature = prior.curvature(theta);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      dv.v[k] = keep * dv.v[k] + 2 * (1 - keep) * g.v[k] * (d.v[k] + curvature.v[k]);
      v.v[k] = averageSquare(v.v[k], keep, g.v[k]);
      T precondition = 1 / (lambda + math::sqrt(v.v[k]));
      theta.v[k] = descend(theta.v[k], s.rate, precondition * g.v[k]) + s.scale * math::sqrt(precondition) * z.v[k];
      if (drift > 0) theta.v[k] += drift * gammaOf(v.v[k], dv.v[k], lambda);
    }
    store(second.at(), i, count, v);
    store(secondSlope.at(), i, count, dv);
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// accumulate adds x to a running sum over steps.
template <class T>
INLINE void accumulate(Out<T> statistics, In<T> x, InOut<T> sum, BlockRange n) {
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<T> q = load(x.at(), i, count), s = load(sum.at(), i, count);
    T statistic = dot(q, q);
#pragma unroll
    for (int k = 0; k < 4; k++) s.v[k] += q.v[k];
    store(sum.at(), i, count, s);
    return statistic;
  });
}

#define PSGLD_GAMMA(T, suffix)                                                                                                 \
  UPDATE_OF(psgld_gamma_update_##suffix, 1,                                                                                    \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> second, InOut<T> secondSlope, In<T> diagonal, TABLES(T), BlockRange n,  \
          ENTRIES, unsigned stream, T alpha, T lambda, PRIOR(T)),                                                              \
         psgldGamma(statistics, w, dw, second, secondSlope, diagonal, SCHEDULES_OF(T), n, stream, alpha, lambda, PRIOR_OF(T))) \
  UPDATE(accumulate_update_##suffix, T, (Out<T> statistics, In<T> x, InOut<T> sum, BlockRange n), accumulate(statistics, x, sum, n))

PSGLD_GAMMA(float, f32)
PSGLD_GAMMA(double, f64)
