// Steps of samplers whose preconditioner is a matrix, which other kernels multiply by: the gradient
// of U/N; y = -rate g + sqrt(2 h T) xi in the whitened space; and theta <- theta + move. Also a
// table's entry at the present step, times a factor that the chain's state chooses.
#include "langevin.cuh"

// posteriorGradient adds the prior's slope to dw.
template <class T>
INLINE void posteriorGradient(Out<T> g, In<T> w, In<T> dw, int n, const Prior<T>& prior) {
  mapEach(g, n, [&](T theta, T dw) INLINED { return prior.gradient(dw, theta); }, w, dw);
}

// whitenedMove is SGLD's step in the whitened space; other kernels multiply the result by the
// preconditioner's factors.
template <class T>
INLINE void whitenedMove(Out<T> y, In<T> gradient, const Schedules<T>& schedules, int n, unsigned stream, int dataSize) {
  const Step<T>& s = schedules.step(dataSize);
  quads(n, [&](int i, int count) INLINED {
    Quad<T> g = load(gradient.at(), i, count), z = draw(s, stream, i);
#pragma unroll
    for (int k = 0; k < 4; k++) z.v[k] = s.scale * z.v[k] - s.rate * g.v[k];
    store(y.at(), i, count, z);
  });
}

template <class T>
INLINE void moveUpdate(Out<T> statistics, InOut<T> w, In<T> gradient, In<T> move, BlockRange n) {
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<T> theta = load(w.at(), i, count), g = load(gradient.at(), i, count), m = load(move.at(), i, count);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] += m.v[k];
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// scaledEntry is op.ScaledEntry: state begins with the number of the factor.
template <class T>
INLINE void scaledEntry(Out<T> y, In<T> table, In<T> factors, In<T> state, Header header, int entries) {
  if (first() == 0) y.at()[0] = entry(table, entries, stepOf(header)) * factors.at()[(int)state.at()[0]];
}

#define WHITENED(T, suffix)                                                                                                             \
  KERNEL(posterior_gradient_fwd_##suffix, 256)(Out<T> g, In<T> w, In<T> dw, int n, PRIOR(T)) {                                          \
    posteriorGradient(g, w, dw, n, PRIOR_OF(T));                                                                                        \
  }                                                                                                                                     \
  KERNEL(whitened_move_fwd_##suffix, 256)(Out<T> y, In<T> g, TABLES(T), int n, ENTRIES, unsigned stream, int dataSize) {                \
    whitenedMove(y, g, SCHEDULES_OF(T), n, stream, dataSize);                                                                           \
  }                                                                                                                                     \
  UPDATE(move_update_##suffix, T, (Out<T> statistics, InOut<T> w, In<T> g, In<T> move, BlockRange n), moveUpdate(statistics, w, g, move, n)) \
  KERNEL(scaled_entry_fwd_##suffix, 256)(Out<T> y, In<T> table, In<T> factors, In<T> state, Header header, int entries, int) {          \
    scaledEntry(y, table, factors, state, header, entries);                                                                             \
  }

WHITENED(float, f32)
WHITENED(double, f64)
