// Step size, temperature and noise of a sampler's step.
#pragma once
#include "prior.cuh"
#include "update.cuh"

namespace pollen {

// Step is a chain at a step: rate and temperature from the schedules, h = rate/N, and scale, the
// standard deviation of its noise, sqrt(2 h T).
template <class T>
struct Step {
  Address chain;
  double h;
  T temperature, rate, scale;

  // number is the step's number, from 0.
  INLINE unsigned long long number() const { return chain.step; }

  // memory returns the decay of a running mean of squares: t/(t+1), which makes it the plain mean
  // of all squares so far, until that reaches alpha.
  INLINE T memory(T alpha) const {
    T all = T(number()) / T(number() + 1);
    return all < alpha ? all : alpha;
  }

  // noise returns the standard deviation of velocities' noise of a given strength.
  INLINE T noise(double strength) const { return T(noiseScale(h, (double)temperature, strength)); }
};

// Schedules are tables of step sizes and temperatures by step.
template <class T>
struct Schedules {
  In<T> rates, temperatures;
  Header header;
  int rateEntries, temperatureEntries;

  // step returns the header's step. Only the block's first thread computes it, for doubles are slow
  // on some devices.
  INLINE const Step<T>& step(int dataSize) const {
    return once<Step<T>>([&]() INLINED {
      Step<T> s;
      s.chain = addressOf(header, 0);
      s.rate = entry(rates, rateEntries, s.number());
      s.temperature = entry(temperatures, temperatureEntries, s.number());
      s.h = (double)s.rate / dataSize;
      s.scale = s.noise(1);
      return s;
    });
  }
};

// draw returns the standard normals of elements i to i + 3 of a stream, or 0 at temperature 0.
template <class T>
INLINE Quad<T> draw(const Step<T>& s, unsigned stream, int i) {
  if (!(s.temperature > 0)) return {};
  Address noise = s.chain;
  noise.stream = stream;
  Quad<float> z = normals(noise, i / 4);
  return {{T(z.v[0]), T(z.v[1]), T(z.v[2]), T(z.v[3])}};
}

}  // namespace pollen

// TABLES and ENTRIES declare a kernel's arguments for schedules, which lie in two places of the
// argument list: buffers before scalars. SCHEDULES_OF makes the Schedules of them.
#define TABLES(T) In<T> rates, In<T> temperatures, Header header
#define ENTRIES int rateEntries, int temperatureEntries
#define SCHEDULES_OF(T) (Schedules<T>{rates, temperatures, header, rateEntries, temperatureEntries})
