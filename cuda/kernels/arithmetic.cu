// Elementwise arithmetic: the four operations, ln(e^a + e^b), a^b and comparisons, with NumPy's
// broadcasting where the operands' shapes differ. Maximum and Minimum require equal shapes.
#include "math.cuh"
#include "quad.cuh"
#include "layout.cuh"

// Each operation is a struct whose operator() computes one element. A kernel is a template over
// such a struct, so that the compiler inlines the operation into the loop of loads and stores,
// which takes nearly all of the time.
struct Add {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a + b;
  }
};

// max(0, a + b). NaN stays NaN.
struct AddReLU {
  template <class T>
  INLINE T operator()(T a, T b) const {
    T sum = a + b;
    return sum <= 0 ? T(0) : sum;
  }
};

struct Subtract {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a - b;
  }
};

struct Multiply {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a * b;
  }
};

struct Divide {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return a / b;
  }
};

// max(a, b) + ln(1 + e^-|a-b|). Equal operands, among them two infinities, whose difference is NaN,
// take a shortcut.
struct LogAddExp {
  template <class T>
  INLINE T operator()(T a, T b) const {
    T larger = math::maximum(a, b), smaller = math::minimum(a, b);
    if (larger == smaller) return larger + T(math::ln2);
    return larger + math::log1p(math::exp(smaller - larger));
  }
};

// a^b as e^(b ln |a|) in double; the sign is that of a if b is odd.
struct Power {
  template <class T>
  INLINE T operator()(T a, T b) const {
    if (b == 0 || a == 1) return T(1);
    if (!(math::abs(a) > 0)) return a == 0 ? (b > 0 ? T(0) : math::infinity<T>()) : math::nan<T>();
    T value = T(math::exp((double)b * math::log((double)math::abs(a))));
    if (a > 0) return value;
    if (math::nearest(b) != b) return math::nan<T>();
    return math::nearest(b / 2) * 2 == b ? value : -value;
  }
};

// Comparisons return 1 or 0 in the operands' type. NaN is neither less than, nor equal to,
// anything.
struct Less {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return T(a < b);
  }
};

struct LessEqual {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return T(a <= b);
  }
};

struct Equal {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return T(a == b);
  }
};

// b if it is larger, else a: a also if one of them is NaN.
struct Maximum {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

struct Minimum {
  template <class T>
  INLINE T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

// broadcast computes each operand's offset from the element's number; a broadcast axis has stride
// 0.
template <class F, class T>
INLINE void broadcast(Out<T> y, In<T> a, In<T> b, int n, const Layout<6>& ofA, const Layout<6>& ofB) {
  for (int i = first(); i < n; i += step()) y.at()[i] = F()(a.at()[ofA.at(i)], b.at()[ofB.at(i)]);
}

// ELEMENTWISE is an operation on operands of equal shape, ARITHMETIC the same with broadcasting.
#define ELEMENTWISE(stem, F, T, suffix) \
  KERNEL(stem##_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n) { map(y, n, F(), a, b); }

#define ARITHMETIC(stem, F, T, suffix)                                                                                              \
  ELEMENTWISE(stem, F, T, suffix)                                                                                                   \
  KERNEL(stem##_broadcast_fwd_##suffix, 256)(Out<T> y, In<T> a, In<T> b, int n, LAYOUT6(a), LAYOUT6(b)) {                               \
    broadcast<F>(y, a, b, n, LAYOUT6_OF(a), LAYOUT6_OF(b));                                                                             \
  }

// With equal shapes the kernel needs no index arithmetic and loads four elements at a time. With
// broadcasting each element costs up to five integer divisions per operand, and neighbouring
// threads may read addresses that are far apart.
#define ARITHMETICS(T, suffix)                 \
  ARITHMETIC(add, Add, T, suffix)              \
  ARITHMETIC(add_relu, AddReLU, T, suffix)     \
  ARITHMETIC(subtract, Subtract, T, suffix)    \
  ARITHMETIC(multiply, Multiply, T, suffix)    \
  ARITHMETIC(divide, Divide, T, suffix)        \
  ARITHMETIC(logaddexp, LogAddExp, T, suffix)  \
  ARITHMETIC(power, Power, T, suffix)          \
  ARITHMETIC(less, Less, T, suffix)            \
  ARITHMETIC(less_equal, LessEqual, T, suffix) \
  ARITHMETIC(equal, Equal, T, suffix)          \
  ELEMENTWISE(maximum, Maximum, T, suffix)     \
  ELEMENTWISE(minimum, Minimum, T, suffix)

ARITHMETICS(float, f32)
ARITHMETICS(double, f64)
