// theta <- theta - rate g + sqrt(2 h T) ((1 - c) xi + c before),  before <- xi
//
// The operations are those of leimkuhlerTile in their order, each rounded: the GPU has the host's
// bits. Headers are next to Pollen's own kernels: langevin.cuh has the schedules and the noise,
// update.cuh the loop over parameters.
#include "langevin.cuh"

template <class T>
INLINE void leimkuhler(Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> before, const Schedules<T>& schedules, BlockRange n, unsigned stream,
                       double carry, const Prior<T>& prior) {
  // The block asks for its first parameters while one thread computes the step's numbers.
  prefetch(n, w, dw, before);
  const Step<T>& step = schedules.step(prior.dataSize);
  T kept = T(carry), fresh = T(1 - carry);
  // A thread moves four parameters at a time, i to i+3: the normals of one Philox counter. count is
  // 4 except for the parameter's last ones.
  update(statistics, n, [&](int i, int count) INLINED {
    const Step<T>& s = reload(step);  // read from shared memory again, which is cheaper than registers
    Quad<T> theta = load(w.at(), i, count), g = prior.gradient(load(dw.at(), i, count), theta);
    Quad<T> old = load(before.at(), i, count), xi = draw(s, stream, i);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] = descend(theta.v[k], s.rate, g.v[k]) + s.scale * (fresh * xi.v[k] + kept * old.v[k]);
    store(before.at(), i, count, xi);
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// UPDATE declares the kernel, with the arguments of Lower in their order. One call may then move
// several parameters of a network, which saves launches.
#define LEIMKUHLER(T, suffix)                                                                                     \
  UPDATE(leimkuhler_update_##suffix, T,                                                                           \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> before, TABLES(T), BlockRange n, ENTRIES, unsigned stream, \
          double carry, PRIOR(T)),                                                                                \
         leimkuhler(statistics, w, dw, before, SCHEDULES_OF(T), n, stream, carry, PRIOR_OF(T)))

LEIMKUHLER(float, f32)
LEIMKUHLER(double, f64)
