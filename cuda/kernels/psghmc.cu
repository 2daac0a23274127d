// The step of preconditioned SGHMC, with g the gradient of U/N, h = rate/N and xi ~ N(0, 1):
//
//	psghmc  V <- keep V + (1 - keep) g^2,  G = 1/(lambda + sqrt V),  u <- (1 - a) u - rate sqrt(G) g + sqrt(2 a h T) xi,  theta <- theta + sqrt(G) u
//
// It moves 28 bytes of memory per parameter.
#include "velocities.cuh"

// Square roots and reciprocals are correctly rounded, as on the host. All states are loaded before
// any arithmetic, so that the loads are in flight together.
template <class T>
INLINE void psghmc(Out<T> statistics, InOut<T> second, const Schedules<T>& schedules, const MomentumState<T>& state, double friction, T alpha, T lambda,
                   int freezeAt) {
  state.prefetchAll();
  const Step<T>& s = schedules.step(state.prior.dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED { return Coefficients<T>{T(1 - friction), s.noise(friction)}; });
  const T& memory = once<T>([&]() INLINED { return s.number() >= (unsigned long long)freezeAt ? T(1) : s.memory(alpha); });
  update(statistics, state.n, [&](int i, int count) INLINED {
    const Step<T>& step = reload(s);
    Quad<T> theta = load(state.w.at(), i, count), g = state.prior.gradient(load(state.dw.at(), i, count), theta);
    Quad<T> v = load(second.at(), i, count), u = state.velocities(step, i, count), z = draw(step, state.noise, i);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      v.v[k] = averageSquare(v.v[k], reload(memory), g.v[k]);
      // root is sqrt(G): the position moves by sqrt(G) u, and the force acts on u by sqrt(G) g.
      T root = math::Exact::sqrt(math::Exact::reciprocal(lambda + math::Exact::sqrt(v.v[k])));
      u.v[k] = descend(reload(c).keep * u.v[k], step.rate, root * g.v[k]) + reload(c).scale * z.v[k];
      theta.v[k] += root * u.v[k];
    }
    store(second.at(), i, count, v);
    store(state.w.at(), i, count, theta);
    store(state.v.at(), i, count, u);
    return statistic;
  });
}

#define PSGHMC(T, suffix)                                                                                                          \
  UPDATE(psghmc_update_##suffix, T,                                                                                                \
         (MOMENTUM_STATE(T), In<T> rates, In<T> temperatures, InOut<T> second, Header header, BlockRange n, ENTRIES, STREAMS, double friction, \
          double alpha, double lambda, double freezeAt, PRIOR(T)),                                                                 \
         psghmc(statistics, second, SCHEDULES_OF(T), MOMENTUM_STATE_OF(T), friction, T(alpha), T(lambda), int(freezeAt)))

PSGHMC(float, f32)
PSGHMC(double, f64)
