// Microcanonical Langevin dynamics (MCLMC), in double only; mcmc/mclmcmove.go describes the dot
// products, the decision and the move.
#include "metropolis.cuh"

// The chain's state words and the dot products, numbered as in mcmc/mclmcmove.go.
enum MclmcWord { mclmcStep, mclmcPotential, mclmcKinetic, mclmcError, mclmcSum, mclmcWeight, mclmcU, mclmcG, mclmcKept, mclmcSpread, mclmcWords };
enum MclmcSum { sumGG, sumUG, sumUU, sumUZ, sumGZ, sumZZ, mclmcSums };

// mclmc_share: the six dot products of u, g and the noise z in each tile.
INLINE void mclmcDots(Out<double> dots, In<double> u, In<double> g, Header header, BlockRange n, unsigned stream) {
  Address noise = addressOf(header, stream);
  tiles(n, [&](int tile) INLINED {
    double sums[mclmcSums] = {};
    tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<double> direction = load(u.at(), i, count), slope = load(g.at(), i, count), z = wide(normals(noise, i / 4));
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k >= count) z.v[k] = 0;
      sums[sumGG] += dot(slope, slope);
      sums[sumUG] += dot(direction, slope);
      sums[sumUU] += dot(direction, direction);
      sums[sumUZ] += dot(direction, z);
      sums[sumGZ] += dot(slope, z);
      sums[sumZZ] += dot(z, z);
      return 0.0;
    });
#pragma unroll
    for (int k = 0; k < mclmcSums; k++) storeTile(dots, mclmcSums * tile + k, blockSum(sums[k]));
  });
}
UPDATE(mclmc_share_f64, double,
       (Out<double> dots, In<double> u, In<double> g, Header header, BlockRange n, unsigned stream),
       mclmcDots(dots, u, g, header, n, stream))

// mclmc_sum adds a parameter's dot products over its tiles to the totals, which the first parameter
// (begins) initialises. It runs as one block.
//
// The dot products are needed for the whole vector of parameters, which lies in several buffers.
// So a step takes four kinds of launches: dots per tile, sums per parameter, one decision, and
// moves.
KERNEL(mclmc_sum_f64, 256)(InOut<double> total, In<double> dots, int tiles, int begins) {
  for (int k = 0; k < mclmcSums; k++) {
    double sum = 0;
    for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum += dots.at()[mclmcSums * i + k];
    sum = blockSum(sum);
    if (threadIdx.x == 0) total.at()[k] = begins ? sum : total.at()[k] + sum;
  }
}

// DirectionState is a direction as a combination of u and g: along is its component along -g/|g|.
//
// The direction u has length 1, so that a rotation in the plane of u and g is all that a kick does
// to it. Two coefficients describe it; the vectors themselves are combined once, by mclmc_move.
struct DirectionState {
  double u, g, along, slope, rate;

  INLINE double towards(double product) const { return slope == 0 ? 0 : -product / slope; }

  // kick is the momentum update B; it returns log(cosh x + e.u sinh x).
  INLINE double kick(double step) {
    double x = step * rate;
    if (x == 0) return 0;
    double a = along < -1 ? -1 : along > 1 ? 1 : along, shrink = math::exp(-x), whole = 1 + a + shrink * shrink * (1 - a), keep = 2 * shrink / whole;
    u *= keep;
    g *= keep;
    g -= (1 - shrink) * (1 + shrink + a * (1 - shrink)) / whole / slope;
    along = (1 + a - shrink * shrink * (1 - a)) / whole;
    return x - 0x1.62e42fefa39efp-1 + math::log(whole);
  }
};

// Microcanonical has mclmc_decide's constants.
struct Microcanonical {
  int dimensions, warmup, coarse;  // coarse is the number of warm-up steps that use only whether the error is too large
  double temperature, noise, energyVariance;

  INLINE void adapt(double* words, unsigned long long made) const {
    constexpr double grow = 0.2;
    double size = words[mclmcStep], failure = words[mclmcError], excess = failure * failure / (dimensions * energyVariance);
    double learned = (double)made - (double)coarse;
    if (learned <= 0 || !(excess < math::infinity<double>())) {
      words[mclmcStep] = size * math::exp(excess < 1 && learned <= 0 ? grow : -2 * grow);
      return;
    }
    // A weighted average of size^-6 excess, the coefficient of the energy error's variance per
    // step^6; old terms are forgotten so that the average covers about half of the steps so far.
    double memory = learned > 40 ? learned / 2 : 20, keep = (memory - 1) / (memory + 1);
    double off = math::log(excess + 1e-8) / 9, weight = math::exp(-off * off / 2), cube = size * size * size;
    words[mclmcSum] = keep * words[mclmcSum] + weight * excess / (cube * cube);
    words[mclmcWeight] = keep * words[mclmcWeight] + weight;
    words[mclmcStep] = math::exp(-math::log(words[mclmcSum] / words[mclmcWeight]) / 6);
  }

  INLINE void turn(double* words, const double* sums, double potential, unsigned long long step) const {
    DirectionState t = {};
    // kick is called twice: the second half of this step's B, which completes the energy error, and
    // the first half of the next step's, with the same gradient.
    t.slope = math::sqrt(sums[sumGG]);
    t.rate = t.slope / (2 * temperature * (dimensions - 1));
    t.u = 1 / math::sqrt(sums[sumUU]);
    t.along = t.towards(t.u * sums[sumUG]);
    if (step > 0) {
      double kinetic = words[mclmcKinetic] + t.kick(words[mclmcStep]);
      words[mclmcError] = (potential - words[mclmcPotential]) / temperature + (dimensions - 1) * kinetic;
      if (step <= (unsigned long long)warmup) adapt(words, step);
    }
    words[mclmcKinetic] = t.kick(words[mclmcStep]);
    words[mclmcPotential] = potential;
    double across = t.u * sums[sumUZ] + t.g * sums[sumGZ], length = math::sqrt(1 + 2 * (noise * across) + noise * noise * sums[sumZZ]);
    words[mclmcU] = t.u;
    words[mclmcG] = t.g;
    words[mclmcKept] = 1 / length;
    words[mclmcSpread] = noise / length;
  }
};

// mclmc_decide runs as one thread, after all parameters' dot products have been added.
KERNEL(mclmc_decide_f64, 32)
(Out<double> out, In<double> potential, InOut<double> chain, Header header, In<double> sums, int dimensions, int warmup, int coarse,
 double temperature, double noise, double energyVariance) {
  if (first() > 0) return;
  double* words = chain.at();
  Microcanonical{dimensions, warmup, coarse, temperature, noise, energyVariance}.turn(words, sums.at(), potential.at()[0], stepOf(header));
  for (int i = 0; i < mclmcWords; i++) out.at()[i] = words[i];
}

// mclmc_move updates the direction, and makes theta <- theta + step/2 u before and after the
// stochastic part O.
INLINE void mclmcMove(Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> u, InOut<double> position, In<double> words,
                      Header header, BlockRange n, unsigned stream) {
  const double* decided = words.at();
  double half = decided[mclmcStep] / 2, keep = decided[mclmcU], pull = decided[mclmcG], kept = decided[mclmcKept], spread = decided[mclmcSpread];
  Address noise = addressOf(header, stream);
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<double> theta = load(w.at(), i, count), g = load(dw.at(), i, count), direction = load(u.at(), i, count), z = wide(normals(noise, i / 4));
    double statistic = dot(theta, g);
    store(position.at(), i, count, theta);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      double before = keep * direction.v[k] + pull * g.v[k];
      direction.v[k] = kept * before + spread * z.v[k];
      theta.v[k] += half * (before + direction.v[k]);
    }
    store(u.at(), i, count, direction);
    store(w.at(), i, count, theta);
    return statistic;
  });
}
UPDATE(mclmc_move_f64, double,
       (Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> u, InOut<double> position, In<double> words,
        Header header, BlockRange n, unsigned stream),
       mclmcMove(statistics, w, dw, u, position, words, header, n, stream))
