// Filter response normalisation with its threshold, residual sum and activation, and all gradients of
// these, each in one pass over memory. With s = 1/sqrt(mean of x^2 + epsilon) of a row,
// which is a channel of an image,
//
//	y = max(gamma[c] s x + beta[c], tau[c]),  z = silu(y + r)
//	ds = dz silu'(y + r),  du = ds where y > tau[c], else 0
//	dx = gamma[c] s du - x s^3 gamma[c] mean(du x)
//
// and, for each row, the terms of the gradients by gamma, beta and tau (the sums of s x du, du and
// ds - du) and by the bias of a convolution before it (the sum of dx). Flags leave out parts that a
// network does not have; activation is 1 for SiLU and 2 for ReLU. See graph/op/normalize.go and
// normalizegradients.go.
#include "normalizerows.cuh"

template <int quads, class T>
INLINE void normalizeRows(Out<T> z, In<T> x, In<T> gamma, In<T> beta, In<T> tau, In<T> r, int rows, int channels, int width, int lanes, int threshold, int add,
                          int activation, T epsilon) {
  RowShape<quads> s(rows, width, lanes);
  Row<T, quads> v(x.at(), s);
  int channel = s.row % channels;
  RowNorm<T> norm(v, s, gamma.at()[channel], beta.at()[channel], epsilon);
  T bound = tau.at()[channel];
  auto normalized = [&](Place p) INLINED {
    T y = norm(v(p));
    return threshold ? math::maximum(y, bound) : y;
  };
  auto activated = [&](T y) INLINED { return activation == 1 ? y * math::sigmoid(y) : activation == 2 && y <= 0 ? T(0) : y; };
  if (add) {
    Row<T, quads> added(r.at(), s);
    s.each([&](Place p) INLINED { v.set(p, activated(normalized(p) + added(p)), z.at(), s); });
  } else {
    s.each([&](Place p) INLINED { v.set(p, activated(normalized(p)), z.at(), s); });
  }
  v.write(z.at(), s);
}

#define NORMALIZE_ROWS(T, suffix, ending, quads, blocks)                                                                                    \
  KERNEL(normalize_rows##ending##_##suffix, 128, blocks)(Out<T> z, In<T> x, In<T> gamma, In<T> beta, In<T> tau, In<T> r, int rows,          \
                                                         int channels, int width, int lanes, int threshold, int add, int act, T epsilon) {  \
    normalizeRows<quads>(z, x, gamma, beta, tau, r, rows, channels, width, lanes, threshold, add, act, epsilon);                            \
  }

NORMALIZE_ROWS(float, f32, , 0, 4)
NORMALIZE_ROWS(float, f32, _short, 2, 8)
NORMALIZE_ROWS(float, f32, _long, 8, 4)
NORMALIZE_ROWS(double, f64, , 0, 4)

#define GRADIENTS(T)                                                                                                                     \
  In<T> dz, In<T> other, In<T> x, In<T> gamma, In<T> beta, In<T> tau, int rows, int channels, int width, int lanes, int sum, int threshold, \
      int silu, int bias, T epsilon
#define GRADIENTS_OF dz, other, x, gamma, beta, tau, rows, channels, width, lanes, sum, threshold, silu, bias, epsilon

template <int quads, bool residual, class T>
INLINE void normalizeGradients(Out<double> terms, Out<T> dx, Out<T> ds, In<T> r, GRADIENTS(T)) {
  RowShape<quads> s(rows, width, lanes);
  Row<T, quads> v(x.at(), s), g(dz.at(), s);
  auto added = [&] {
    if constexpr (residual) return Row<T, quads>(r.at(), s);
    else return g;
  }();
  const T* second = other.at() + s.begin();
  if constexpr (quads > 0) {
    if (sum) g.add(other.at(), s);
  }
  int channel = s.row % channels;
  double weight = gamma.at()[channel];
  RowNorm<T> norm(v, s, weight, beta.at()[channel], epsilon);
  T bound = tau.at()[channel];

  // before returns ds of an element, and sets y. It reads dz, which g has in registers until the first
  // pass replaces it.
  auto before = [&](Place p, T& y) INLINED {
    T d = g(p);
    if constexpr (quads == 0) {
      if (sum) d += second[p.k];
    }
    if (!threshold) return d;
    y = math::maximum(norm(v(p)), bound);
    return silu ? d * math::siluSlope(residual ? y + added(p) : y) : d;
  };
  auto pass = [&](T d, T y) INLINED { return !threshold || y > bound ? d : T(0); };
  double products = 0, passed = 0, stopped = 0, biases = 0;
  s.each([&](Place p) INLINED {
    T y, d = before(p, y), u = pass(d, y);
    if (residual) added.set(p, d, ds.at(), s);
    if constexpr (quads > 0) g.v[p.k].v[p.i] = u;
    products = math::fma((double)u, (double)v(p), products);
    passed += u;
    stopped += (double)d - u;
  });
  if (residual) added.write(ds.at(), s);
  products = s.sum(products) * norm.inverse, passed = s.sum(passed), stopped = s.sum(stopped);
  // In the order of the host's operations, see normalizeBackward in normalize.cu.
  double b = norm.inverse * norm.inverse * (weight * products / width);
  s.each([&](Place p) INLINED {
    T u, y;
    if constexpr (quads > 0) u = g(p);
    else u = pass(before(p, y), y);
    T value = T(norm.scale * u - (double)v(p) * b);
    biases += value;
    v.set(p, value, dx.at(), s);
  });
  v.write(dx.at(), s);
  if (bias) biases = s.sum(biases);
  if (s.exists && s.lane == 0) {
    int tables = 2 + threshold + bias;
    double* to = terms.at() + (long long)(s.row / channels * tables) * channels + channel;
    to[0] = products;
    to[channels] = passed;
    if (threshold) to[2 * channels] = stopped;
    if (bias) to[(tables - 1) * channels] = biases;
  }
}

#define NORMALIZE_GRADIENTS(T, suffix, ending, quads, blocks)                                               \
  KERNEL(normalize_gradients##ending##_##suffix, 128, blocks)(Out<double> terms, Out<T> dx, GRADIENTS(T)) { \
    normalizeGradients<quads, false>(terms, dx, dx, dz, GRADIENTS_OF);                                      \
  }
#define NORMALIZE_GRADIENTS_RESIDUAL(T, suffix, ending, quads, blocks)                                                                   \
  KERNEL(normalize_gradients_residual##ending##_##suffix, 128, blocks)(Out<double> terms, Out<T> dx, Out<T> ds, In<T> r, GRADIENTS(T)) { \
    normalizeGradients<quads, true>(terms, dx, ds, r, GRADIENTS_OF);                                                                     \
  }

NORMALIZE_GRADIENTS(float, f32, , 0, 4)
NORMALIZE_GRADIENTS(float, f32, _short, 2, 6)
NORMALIZE_GRADIENTS(float, f32, _long, 8, 3)
NORMALIZE_GRADIENTS(double, f64, , 0, 4)
NORMALIZE_GRADIENTS_RESIDUAL(float, f32, , 0, 4)
NORMALIZE_GRADIENTS_RESIDUAL(float, f32, _short, 2, 5)
NORMALIZE_GRADIENTS_RESIDUAL(float, f32, _long, 8, 3)
NORMALIZE_GRADIENTS_RESIDUAL(double, f64, , 0, 4)

// normalizeGradientSums adds the terms of all images, one block for 32 of columns, which are all
// channels of two to four tables.
template <class T>
INLINE void normalizeGradientSums(Out<T> first, Out<T> second, Out<T> third, Out<T> fourth, In<double> terms, int images, int channels, int columns) {
  const double* from = terms.at();
  columnSumsTo(columns, images, [&](int column, int image) INLINED { return from[(long long)image * columns + column]; },
               [&](int column, double total) INLINED {
                 int table = column / channels;
                 T* to = table == 0 ? first.at() : table == 1 ? second.at() : table == 2 ? third.at() : fourth.at();
                 to[column % channels] = T(total);
               });
}

KERNEL(normalize_gradient_sums_f32, 256)
(Out<float> first, Out<float> second, Out<float> third, Out<float> fourth, In<double> terms, int images, int channels, int columns) {
  normalizeGradientSums(first, second, third, fourth, terms, images, channels, columns);
}
KERNEL(normalize_gradient_sums_f64, 256)
(Out<double> first, Out<double> second, Out<double> third, Out<double> fourth, In<double> terms, int images, int channels, int columns) {
  normalizeGradientSums(first, second, third, fourth, terms, images, channels, columns);
}
