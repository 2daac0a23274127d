// Step of preconditioned SGHMC, with g the gradient of U/N, h = rate/N and xi ~ N(0, 1):
//
//	psghmc  V <- keep V + (1 - keep) g^2,  G = 1/(lambda + sqrt V),  u <- (1 - a) u - rate sqrt(G) g + sqrt(2 a h T) xi,  theta <- theta + sqrt(G) u
//
// 28 bytes of memory per parameter.
#include "velocities.cuh"

template <class T>
INLINE void psghmc(Out<T> statistics, InOut<T> second, const Schedules<T>& schedules, const Walkers<T>& walkers, double friction, T alpha, T lambda,
                   int freezeAt) {
  walkers.prefetchAll();
  const Step<T>& s = schedules.step(walkers.prior.dataSize);
  const auto& c = once<Coefficients<T>>([&]() INLINED { return Coefficients<T>{T(1 - friction), s.noise(friction)}; });
  const T& memory = once<T>([&]() INLINED { return s.number() >= (unsigned long long)freezeAt ? T(1) : s.memory(alpha); });
  walkers.move(statistics, s, nullptr, [&](int i, T& theta, T& u, T g, T z) INLINED {
    T v = averageSquare(second.at()[i], again(memory), g);
    second.at()[i] = v;
    T root = math::Exact::sqrt(math::Exact::reciprocal(lambda + math::Exact::sqrt(v)));
    u = descend(again(c).keep * u, again(s).rate, root * g) + again(c).scale * z;
    theta += root * u;
  });
}

#define PSGHMC(T, suffix)                                                                                                                              \
  UPDATE(psghmc_update_##suffix, T)                                                                                                                    \
  (WALKERS(T), In<T> rates, In<T> temperatures, InOut<T> second, Header header, int n, ENTRIES, STREAMS, double friction, double alpha, double lambda, double freezeAt, \
   PRIOR(T)) {                                                                                                                                         \
    psghmc(statistics, second, SCHEDULES_OF(T), WALKERS_OF(T), friction, T(alpha), T(lambda), int(freezeAt));                                          \
  }

PSGHMC(float, f32)
PSGHMC(double, f64)
