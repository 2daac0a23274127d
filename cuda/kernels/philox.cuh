// Counter-based random numbers, bit-equal to package tensor/random. A number is a pure function of
// its address: no generator state is stored, and any thread can compute any number.
//
// The generator is Philox4x32-10 (Salmon et al. 2011). The key is the 64-bit seed, and the 128-bit
// counter is
//
//     c0  element / 4              one call makes the words of four consecutive elements
//     c1  low 32 bits of the step
//     c2  low 16 bits: bits 32-47 of the step; high 16 bits: the stream
//     c3  the chain
//
// Example: element 10 of stream 3 in step 7 of chain 2 is word 2 of the counter (2, 7, 3 << 16, 2).
#pragma once
#include "math.cuh"
#include "quad.cuh"

namespace pollen {

// Header is a chain's header in memory, the three words of graph.Header: seed, chain and step.
using Header = In<unsigned long long>;
enum HeaderWord { headerSeed, headerChain, headerStep };

INLINE unsigned long long stepOf(Header header) { return header.at()[headerStep]; }

// Address identifies a stream of a chain at a step, see random.Address.
struct Address {
  unsigned long long seed, step;
  unsigned chain, stream;
};

INLINE Address addressOf(Header header, unsigned stream) {
  const unsigned long long* h = header.at();
  return {h[headerSeed], h[headerStep], (unsigned)h[headerChain], stream};
}

// philox returns the words of elements 4 quad to 4 quad + 3 of a stream.
INLINE Quad<unsigned> philox(const Address& a, unsigned quad) {
  // Without opaque the compiler precomputes the ten rounds' keys, which occupy twenty registers in
  // a loop.
  unsigned k0 = opaque((unsigned)a.seed), k1 = opaque((unsigned)(a.seed >> 32));
  unsigned c0 = quad, c1 = (unsigned)a.step, c2 = ((unsigned)(a.step >> 32) & 0xffffu) | a.stream << 16, c3 = a.chain;
#pragma unroll
  for (int round = 0; round < 10; round++) {
    // A round multiplies two of the words by constants; the high halves, XORed with the other words
    // and the key, change places with the low halves. The key advances by the golden ratio and
    // sqrt(3) - 1, as Weyl sequences.
    unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    c0 = (unsigned)(p1 >> 32) ^ c1 ^ k0;
    c1 = (unsigned)p1;
    c2 = (unsigned)(p0 >> 32) ^ c3 ^ k1;
    c3 = (unsigned)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// uniform maps a word to a multiple of 2^-24 in (0, 1].
INLINE float uniform(unsigned word) { return (float)(int)((word >> 8) + 1) * 0x1p-24f; }

INLINE float choose(bool first, float a, float b) { return first ? a : b; }

// radius and circle are the two halves of the Box-Muller transform: sqrt(-2 ln u), and the cosine
// and sine of a random angle. They repeat the operations of tensor/random/normal.go one by one;
// each is rounded to float, and none is fused.
INLINE float radius(unsigned word) {
  // -2 ln u = k 2 ln 2 - 2 ln(1 - g) with u = 2^-k (1 - g) and 0 < g <= 1/2: no term is negative,
  // so nothing cancels. For a word of the upper half, a negative n = 2^32 (u - 1), k is 0, and g
  // needs no subtraction. word | 1 excludes ln 0.
  int n = (int)(word | 1);
  float x = (float)n;
  unsigned bits = math::bitsOf(x);
  bool upper = n < 0;
  float k = upper ? 0.0f : (float)(158 - (int)(bits >> 23));
  float g = choose(upper, x * -0x1p-32f, 1 - math::fromBits((bits & 0x007fffffu) | 0x3f000000u));

  float g2 = g * g, g4 = g2 * g2;
  float low = (0x1.55a384p-1f * g + 0x1.fffecp-1f) + (0x1.0df6cap-1f * g + 0x1.f313e6p-2f) * g2;
  float high = (0x1.354ff6p+1f * g + -0x1.72285ep-2f) + (0x1.6a0f48p+1f * g + -0x1.a3993p+1f) * g2;
  float p = low + high * g4;
  return math::Fast::sqrt(k * 0x1.62e43p+0f + ((g + g) + p * g2));  // the operand is from 2^-31 to 45
}

INLINE void circle(unsigned word, float* cosine, float* sine) {
  // The angle is pi/2 (quadrant + t) with the quadrant rounded to nearest, so t is in [-1/2, 1/2],
  // where the polynomials of sine and cosine are short.
  float t = (float)(int)(word << 2 | 2) * 0x1p-32f;
  float v = t * t, v2 = v * v;
  float s = (-0x1.4abc24p-1f * v + 0x1.921fb6p+0f) + (-0x1.33198ep-8f * v + 0x1.4680a4p-4f) * v2;
  float c = (0x1.03c1bp-2f * v + -0x1.3bd3ccp+0f) + (0x1.d4f7eep-11f * v + -0x1.55b2b6p-6f) * v2;
  s = s * t;
  c = c * v + 1;
  // Adding an eighth of the circle rounds the quadrant to nearest. Its lower bit exchanges sine and
  // cosine, and the two bits give the signs.
  unsigned quadrant = word + (1u << 29);
  bool odd = (quadrant & (1u << 30)) != 0;
  *cosine = math::fromBits(math::bitsOf(choose(odd, s, c)) ^ ((quadrant + (1u << 30)) & (1u << 31)));
  *sine = math::fromBits(math::bitsOf(choose(odd, c, s)) ^ (quadrant & (1u << 31)));
}

// normals returns the standard normals of elements 4 quad to 4 quad + 3: two pairs of Box-Muller,
// from words 0 and 1, and 2 and 3.
INLINE Quad<float> normals(const Address& a, unsigned quad) {
  Quad<unsigned> w = philox(a, quad);
  Quad<float> z;
#pragma unroll
  for (int k = 0; k < 4; k += 2) {
    float cosine, sine, r = radius(w.v[k]);
    circle(w.v[k + 1], &cosine, &sine);
    z.v[k] = r * cosine;
    z.v[k + 1] = r * sine;
  }
  return z;
}

// Order is random.Order, a keyed bijection of [0, size): a Feistel network over the next power of
// two, repeated until the result is below size (cycle walking). It gives an epoch's order without
// storing a permutation.
struct Order {
  unsigned long long size;
  unsigned leftMask, rightMask, rightBits;
  unsigned keys[8];

  INLINE Order(unsigned long long size, const Address& chain, unsigned long long epoch) : size(size) {
    // width is the number of bits of the permuted range, at least 8; left and right have half of
    // them each. With at most half of the range beyond size, two attempts suffice on average, for
    // size above 128.
    unsigned width = size > 256 ? 64 - __builtin_clzll(size - 1) : 8;
    rightBits = width - width / 2;
    leftMask = (unsigned)((1ull << (width / 2)) - 1);
    rightMask = (unsigned)((1ull << rightBits) - 1);
    // The keys are two Philox blocks of the reserved stream 0xffff, at the epoch instead of the
    // step.
    Address a = {chain.seed, epoch, chain.chain, 0xffffu};
#pragma unroll
    for (int half = 0; half < 2; half++) {
      Quad<unsigned> words = philox(a, half);
#pragma unroll
      for (int k = 0; k < 4; k++) keys[4 * half + k] = words.v[k];
    }
  }

  // hash mixes all bits of a word: the round function of the Feistel network.
  INLINE static unsigned hash(unsigned x) {
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
  }

  INLINE unsigned long long at(unsigned long long index) const {
    if (size == 1) return 0;
    do {
      unsigned left = (unsigned)(index >> rightBits), right = (unsigned)index & rightMask;
#pragma unroll
      for (int round = 0; round < 8; round += 2) {
        left ^= hash(right ^ keys[round]) & leftMask;
        right ^= hash(left ^ keys[round + 1]) & rightMask;
      }
      index = (unsigned long long)left << rightBits | right;
    } while (index >= size);
    return index;
  }
};

}  // namespace pollen
