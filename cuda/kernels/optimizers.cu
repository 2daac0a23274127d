// The optimizers' steps: g = dw + decay theta, followed by the update in each rule's comment. An
// update moves 12 bytes of memory per parameter, and 8 more for each state.
#include "update.cuh"

// optimize calls rule(theta, g, s) for each element, which returns the new theta and updates the
// states s.
//
// A rule is a struct with the constants of a step and an operator() for one element. It is passed
// by value, so that its constants live in registers. Where a rule has two states, they lie in two
// buffers, since each has its own place in a checkpoint.
template <int states, class T, class Rule>
INLINE void optimize(Out<T> statistics, InOut<T> w, In<T> dw, const InOut<T> (&state)[states], BlockRange n, T decay, Rule rule) {
  update(statistics, n, [&](int i, int count) INLINED {
    // All loads come before the arithmetic, so that they are in flight together.
    Quad<T> theta = load(w.at(), i, count), g = load(dw.at(), i, count), s[states];
#pragma unroll
    for (int j = 0; j < states; j++) s[j] = load(state[j].at(), i, count);
#pragma unroll
    for (int k = 0; k < 4; k++) g.v[k] = decayed(g.v[k], theta.v[k], decay);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T now[states];
#pragma unroll
      for (int j = 0; j < states; j++) now[j] = s[j].v[k];
      theta.v[k] = rule(theta.v[k], g.v[k], now);
#pragma unroll
      for (int j = 0; j < states; j++) s[j].v[k] = now[j];
    }
    store(w.at(), i, count, theta);
#pragma unroll
    for (int j = 0; j < states; j++) store(state[j].at(), i, count, s[j]);
    return statistic;
  });
}

// preconditioned returns g / (sqrt(square) + epsilon).
template <class T>
INLINE T preconditioned(T g, T square, T epsilon) {
  return 1 / (epsilon + math::sqrt(square)) * g;
}

// theta <- theta - rate g
// sgd has no state, and so does not use optimize.
template <class T>
INLINE void sgd(Out<T> statistics, InOut<T> w, In<T> dw, T rate, BlockRange n, T decay) {
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<T> theta = load(w.at(), i, count), g = load(dw.at(), i, count);
#pragma unroll
    for (int k = 0; k < 4; k++) g.v[k] = decayed(g.v[k], theta.v[k], decay);
    T statistic = dot(theta, g);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] = descend(theta.v[k], rate, g.v[k]);
    store(w.at(), i, count, theta);
    return statistic;
  });
}

// v <- keep v + rate g, theta <- theta - v
template <class T>
struct Momentum {
  T rate, keep;

  INLINE T operator()(T theta, T g, T* s) const {
    s[0] = keep * s[0] + rate * g;
    return theta - s[0];
  }
};

// v <- keep v + rate g, theta <- theta - (rate g + keep v)
template <class T>
struct Nesterov {
  T rate, keep;

  INLINE T operator()(T theta, T g, T* s) const {
    T move = rate * g;
    s[0] = keep * s[0] + move;
    return theta - (move + keep * s[0]);
  }
};

// s <- s + g^2, theta <- theta - rate g/(sqrt s + epsilon)
template <class T>
struct Adagrad {
  T rate, epsilon;

  INLINE T operator()(T theta, T g, T* s) const {
    s[0] = s[0] + g * g;
    return descend(theta, rate, preconditioned(g, s[0], epsilon));
  }
};

// s <- keep s + (1 - keep) g^2, theta <- theta - rate g/(sqrt s + epsilon)
template <class T>
struct RMSProp {
  T rate, keep, epsilon;

  INLINE T operator()(T theta, T g, T* s) const {
    s[0] = averageSquare(s[0], keep, g);
    return descend(theta, rate, preconditioned(g, s[0], epsilon));
  }
};

// s <- keep s + (1 - keep) g^2, d = sqrt(u + epsilon)/sqrt(s + epsilon) g,
// u <- keep u + (1 - keep) d^2, theta <- theta - d
template <class T>
struct Adadelta {
  T keep, epsilon;

  INLINE T operator()(T theta, T g, T* s) const {
    s[0] = averageSquare(s[0], keep, g);
    T d = math::sqrt(s[1] + epsilon) / math::sqrt(s[0] + epsilon) * g;
    s[1] = averageSquare(s[1], keep, d);
    return theta - d;
  }
};

// m <- beta1 m + (1 - beta1) g, v <- beta2 v + (1 - beta2) g^2,
// theta <- theta - rate (correct1 m/(sqrt(correct2 v) + epsilon) + decay theta),
// correct = 1/(1 - beta^t)
template <class T>
struct Adam {
  T rate, beta1, beta2, correct1, correct2, epsilon, decay;

  INLINE T operator()(T theta, T g, T* s) const {
    s[0] = beta1 * s[0] + (1 - beta1) * g;
    s[1] = averageSquare(s[1], beta2, g);
    return descend(theta, rate, decayed(preconditioned(correct1 * s[0], correct2 * s[1], epsilon), theta, decay));
  }
};

// adam covers Adam and AdamW: weight decay in the gradient (inGradient), or in the step (inStep).
template <class T>
INLINE void adam(Out<T> statistics, InOut<T> w, In<T> dw, const InOut<T> (&state)[2], In<T> rates, Header header, BlockRange n, int entries, T beta1, T beta2,
                 double log1, double log2, T epsilon, T inGradient, T inStep) {
  struct Correction {
    T first, second;
  };
  prefetch(n, w, dw, state[0], state[1]);
  unsigned long long step = stepOf(header);
  Correction c = once<Correction>([&]() INLINED {
    double t = (double)(step + 1);
    return Correction{T(-1 / math::expm1(t * log1)), T(-1 / math::expm1(t * log2))};
  });
  // t counts from 1. 1 - beta^t is -expm1(t ln beta), which is accurate also where beta^t is near
  // 1; it is computed once per block, in double.
  T rate = entry(rates, entries, step);
  optimize<2>(statistics, w, dw, state, n, inGradient, Adam<T>{rate, beta1, beta2, c.first, c.second, epsilon, inStep});
}

#define RATE entry(rates, entries, stepOf(header))

#define OPTIMIZERS(T, suffix)                                                                                                    \
  UPDATE(sgd_update_##suffix, T,                                                                                                 \
         (Out<T> statistics, InOut<T> w, In<T> dw, In<T> rates, Header header, BlockRange n, int entries, double decay),              \
         sgd(statistics, w, dw, RATE, n, T(decay)))                                                                              \
  UPDATE(momentum_update_##suffix, T,                                                                                            \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> v, In<T> rates, Header header, BlockRange n, int entries, double keep,    \
          double decay),                                                                                                         \
         optimize<1>(statistics, w, dw, {v}, n, T(decay), Momentum<T>{RATE, T(keep)}))                                           \
  UPDATE(nesterov_update_##suffix, T,                                                                                            \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> v, In<T> rates, Header header, BlockRange n, int entries, double keep,    \
          double decay),                                                                                                         \
         optimize<1>(statistics, w, dw, {v}, n, T(decay), Nesterov<T>{RATE, T(keep)}))                                           \
  UPDATE(adagrad_update_##suffix, T,                                                                                             \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> s, In<T> rates, Header header, BlockRange n, int entries, double epsilon, \
          double decay),                                                                                                         \
         optimize<1>(statistics, w, dw, {s}, n, T(decay), Adagrad<T>{RATE, T(epsilon)}))                                         \
  UPDATE(rmsprop_update_##suffix, T,                                                                                             \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> s, In<T> rates, Header header, BlockRange n, int entries, double keep,    \
          double epsilon, double decay),                                                                                         \
         optimize<1>(statistics, w, dw, {s}, n, T(decay), RMSProp<T>{RATE, T(keep), T(epsilon)}))                                \
  UPDATE(adadelta_update_##suffix, T,                                                                                            \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> s, InOut<T> u, Header, BlockRange n, double keep, double epsilon,         \
          double decay),                                                                                                         \
         optimize<2>(statistics, w, dw, {s, u}, n, T(decay), Adadelta<T>{T(keep), T(epsilon)}))                                  \
  UPDATE(adam_update_##suffix, T,                                                                                                \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> m, InOut<T> v, In<T> rates, Header header, BlockRange n, int entries,     \
          double beta1, double beta2, double log1, double log2, double epsilon, double decay),                                   \
         adam(statistics, w, dw, {m, v}, rates, header, n, entries, T(beta1), T(beta2), log1, log2, T(epsilon), T(decay), T(0))) \
  UPDATE(adamw_update_##suffix, T,                                                                                               \
         (Out<T> statistics, InOut<T> w, In<T> dw, InOut<T> m, InOut<T> v, In<T> rates, Header header, BlockRange n, int entries,     \
          double beta1, double beta2, double log1, double log2, double epsilon, double decay),                                   \
         adam(statistics, w, dw, {m, v}, rates, header, n, entries, T(beta1), T(beta2), log1, log2, T(epsilon), T(0), T(decay)))

OPTIMIZERS(float, f32)
OPTIMIZERS(double, f64)
