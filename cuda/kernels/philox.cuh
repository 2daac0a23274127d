// Random numbers by their address, the same bits as package tensor/random makes: a Philox4x32-10 counter for each four elements of a stream.
#pragma once
#include "math.cuh"
#include "quad.cuh"

namespace pollen {

// Header is who a chain is: graph.Header's three words.
using Header = In<unsigned long long>;
enum HeaderWord { headerSeed, headerChain, headerStep };

INLINE unsigned long long stepOf(Header header) { return header.at()[headerStep]; }

// Address names a stream, see random.Address.
struct Address {
  unsigned long long seed, step;
  unsigned chain, stream;
};

INLINE Address addressOf(Header header, unsigned stream) {
  const unsigned long long* h = header.at();
  return {h[headerSeed], h[headerStep], (unsigned)h[headerChain], stream};
}

// philox is the four words of a stream's elements 4 quad to 4 quad + 3 (Salmon et al. 2011).
INLINE Quad<unsigned> philox(const Address& a, unsigned quad) {
  // The rounds' keys would fill twenty registers beside a loop.
  unsigned k0 = opaque((unsigned)a.seed), k1 = opaque((unsigned)(a.seed >> 32));
  unsigned c0 = quad, c1 = (unsigned)a.step, c2 = ((unsigned)(a.step >> 32) & 0xffffu) | a.stream << 16, c3 = a.chain;
#pragma unroll
  for (int round = 0; round < 10; round++) {
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

// uniform maps a word to (0, 1], a multiple of 2^-24.
INLINE float uniform(unsigned word) { return (float)(int)((word >> 8) + 1) * 0x1p-24f; }

INLINE float choose(bool first, float a, float b) { return first ? a : b; }

// radius and circle are those of tensor/random/normal.go, operation by operation: each is rounded to float, none is fused.
INLINE float radius(unsigned word) {
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
  return math::Fast::sqrt(k * 0x1.62e43p+0f + ((g + g) + p * g2));  // of 2^-31 to 45
}

INLINE void circle(unsigned word, float* cosine, float* sine) {
  float t = (float)(int)(word << 2 | 2) * 0x1p-32f;
  float v = t * t, v2 = v * v;
  float s = (-0x1.4abc24p-1f * v + 0x1.921fb6p+0f) + (-0x1.33198ep-8f * v + 0x1.4680a4p-4f) * v2;
  float c = (0x1.03c1bp-2f * v + -0x1.3bd3ccp+0f) + (0x1.d4f7eep-11f * v + -0x1.55b2b6p-6f) * v2;
  s = s * t;
  c = c * v + 1;
  unsigned quadrant = word + (1u << 29);
  bool odd = (quadrant & (1u << 30)) != 0;
  *cosine = math::fromBits(math::bitsOf(choose(odd, s, c)) ^ ((quadrant + (1u << 30)) & (1u << 31)));
  *sine = math::fromBits(math::bitsOf(choose(odd, c, s)) ^ (quadrant & (1u << 31)));
}

// normals are the standard normals of elements 4 quad to 4 quad + 3.
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

// Order is random.Order: a keyed bijection of [0, size).
struct Order {
  unsigned long long size;
  unsigned leftMask, rightMask, rightBits;
  unsigned keys[8];

  INLINE Order(unsigned long long size, const Address& chain, unsigned long long epoch) : size(size) {
    unsigned width = size > 256 ? 64 - __builtin_clzll(size - 1) : 8;
    rightBits = width - width / 2;
    leftMask = (unsigned)((1ull << (width / 2)) - 1);
    rightMask = (unsigned)((1ull << rightBits) - 1);
    Address a = {chain.seed, epoch, chain.chain, 0xffffu};
#pragma unroll
    for (int half = 0; half < 2; half++) {
      Quad<unsigned> words = philox(a, half);
#pragma unroll
      for (int k = 0; k < 4; k++) keys[4 * half + k] = words.v[k];
    }
  }

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
