// The Metropolis test and its proposals, in double only, see package mcmc: decide.go, randomwalk.go
// and mala.go.
#include "metropolis.cuh"

// The test is made on the GPU, by one thread per chain, so that the host need not read energies
// back and wait for them at every step.

// uniform53 makes a multiple of 2^-53 in [0, 1) of two words.
INLINE double uniform53(unsigned high, unsigned low) {
  return (double)((unsigned long long)high << 21 | (unsigned long long)(low >> 11)) * 0x1p-53;
}

// AcceptanceTest has metropolis_decide's constants.
struct AcceptanceTest {
  ProposalSchedule schedule;
  double temperature, jitter;
  int warmup;
  double rate, anchor;

  // adapt updates dual averaging with proposal m (Hoffman and Gelman 2014, equation 6). The last
  // proposal of the warm-up fixes the step size.
  INLINE void adapt(double* words, int m) const {
    if (m > warmup) return;
    double root = math::sqrt((double)m);
    words[wordDeficit] += (rate - words[wordProbability] - words[wordDeficit]) / (m + 10);
    words[wordLogStep] = anchor - root / 0.05 * words[wordDeficit];
    words[wordLogAverage] += 1 / (root * math::sqrt(root)) * (words[wordLogStep] - words[wordLogAverage]);
    if (m == warmup) words[wordLogStep] = words[wordLogAverage];
  }

  INLINE void run(double* words, double potential, double logRatios, double kinetic, const Address& draws) const {
    Quad<unsigned> w = philox(draws, 0);
    bool decides = schedule.decides(draws.step), starts = schedule.starts(draws.step);
    if (decides) {
      // log alpha = (U(old) - U(new))/T + log ratio of the proposals. NaN counts as a rejection.
      double logarithm = (words[wordPotential] - potential) / temperature + logRatios;
      double energy = words[wordPotential] / temperature + kinetic;
      double probability = math::minimum(1.0, math::exp(logarithm));
      if (probability != probability) probability = 0;
      words[wordProbability] = probability;
      words[wordAccepted] = 0;
      if (uniform53(w.v[0], w.v[1]) < probability) {
        words[wordAccepted] = 1;
        words[wordPotential] = potential;
        energy -= logarithm;
      }
      words[wordEnergy] = energy;
      adapt(words, schedule.decided(draws.step));
    } else if (starts) {
      words[wordAccepted] = 1;
      words[wordPotential] = potential;
    }
    // Each proposal's step size is jittered by a uniform factor, so that trajectories do not
    // resonate with a period of the target.
    if (starts) words[wordStep] = math::exp(words[wordLogStep]) * (1 + jitter * (2 * uniform53(w.v[2], w.v[3]) - 1));
  }
};

// metropolis_decide runs as one thread. logRatios holds the sum over parameters and tiles of log
// q(theta|theta')/q(theta'|theta), kinetic that of kinetic energies where trajectories start.
KERNEL(metropolis_decide_f64, 32)
(Out<double> out, In<double> potential, InOut<double> chain, Header header, In<double> logRatios, In<double> kinetic, int evaluations, int paired,
 double temperature, double jitter, int warmup, double rate, double anchor, unsigned stream) {
  if (first() > 0) return;
  double* words = chain.at();
  AcceptanceTest test = {{evaluations, paired != 0}, temperature, jitter, warmup, rate, anchor};
  test.run(words, potential.at()[0], logRatios.at()[0], kinetic.at()[0], addressOf(header, stream));
  for (int i = 0; i < chainWords; i++) out.at()[i] = words[i];
}

// metropolis_shares adds a parameter's log ratios or kinetic energies to the total, which the first parameter (begins)
// initialises. It runs as one block.
KERNEL(metropolis_shares_f64, 256)(InOut<double> total, In<double> logRatios, int n, int begins) {
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += logRatios.at()[i];
  sum = blockSum(sum);
  if (threadIdx.x == 0) total.at()[0] = begins ? sum : total.at()[0] + sum;
}

// metropolis_no_shares initialises a total that stays 0, for symmetric proposals.
KERNEL(metropolis_no_shares_f64, 32)(Out<double> total) {
  if (first() == 0) total.at()[0] = 0;
}

// metropolis_keep copies a quantity if the new draw has just taken it over, and reports whether it
// did.
KERNEL(metropolis_keep_f64, 256)
(Out<double> accepted, In<double> x, InOut<double> draw, In<double> words, Header header, int n, int evaluations, int paired) {
  ProposalSchedule schedule = {evaluations, paired != 0};
  unsigned long long step = stepOf(header);
  double t = schedule.starts(step) || schedule.decides(step) ? words.at()[wordAccepted] : 0;
  if (first() == 0) accepted.at()[0] = t;
  if (t != 1) return;
  for (int i = first(); i < n; i += pollen::step()) draw.at()[i] = x.at()[i];
}

KERNEL(count_proposals_f64, 32)(Out<unsigned long long> out, Header header, int evaluations) {
  if (first() > 0) return;
  out.at()[headerSeed] = header.at()[headerSeed];
  out.at()[headerChain] = header.at()[headerChain];
  out.at()[headerStep] = header.at()[headerStep] / evaluations;
}

// random_walk_move: theta = position + s xi.
INLINE void randomWalkMove(Out<double> statistics, InOut<double> w, InOut<double> position, In<double> words, Header header, BlockRange n, unsigned stream) {
  double scale = words.at()[wordStep];
  bool accepted = words.at()[wordAccepted] == 1;
  Address noise = addressOf(header, stream);
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<double> theta = load(w.at(), i, count), from = load(position.at(), i, count), z = wide(normals(noise, i / 4));
    acceptOrReject(accepted, theta, from);
    store(position.at(), i, count, from);
#pragma unroll
    for (int k = 0; k < 4; k++) theta.v[k] += scale * z.v[k];
    store(w.at(), i, count, theta);
    return 0.0;
  });
}
UPDATE(random_walk_move_f64, double,
       (Out<double> statistics, InOut<double> w, InOut<double> position, In<double> words, Header header, BlockRange n, unsigned stream),
       randomWalkMove(statistics, w, position, words, header, n, stream))

// mala_share: (|forward|^2 - |backward|^2)/(4 h T), the log ratio of the proposal densities, log
// q(theta|theta')/q(theta'|theta), at steps that decide on a proposal.
INLINE void malaLogRatio(Out<double> logRatios, In<double> w, In<double> dw, In<double> position, In<double> slope, In<double> words, Header header,
                      BlockRange n, double temperature, int evaluations) {
  double h = words.at()[wordStep];
  bool decides = ProposalSchedule{evaluations, evaluations == 2}.decides(stepOf(header));
  tiles(n, [&](int tile) INLINED {
    double sum = !decides ? 0 : tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<double> theta = load(w.at(), i, count), from = load(position.at(), i, count), g = load(dw.at(), i, count), s = load(slope.at(), i, count);
      double difference = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        double forward = theta.v[k] - from.v[k] + h * s.v[k], backward = from.v[k] - theta.v[k] + h * g.v[k];
        difference += forward * forward - backward * backward;
      }
      return difference;
    });
    storeTile(logRatios, tile, decides ? sum / (4 * h * temperature) : 0);
  });
}
UPDATE(mala_share_f64, double,
       (Out<double> logRatios, In<double> w, In<double> dw, In<double> position, In<double> slope, In<double> words, Header header,
        BlockRange n, double temperature, int evaluations),
       malaLogRatio(logRatios, w, dw, position, slope, words, header, n, temperature, evaluations))

// mala_move: theta = position - h slope + sqrt(2 h T) xi, at steps that start a proposal.
INLINE void malaMove(Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> position, InOut<double> slope, In<double> words,
                     Header header, BlockRange n, double temperature, int evaluations, unsigned stream) {
  double h = words.at()[wordStep], scale = noiseScale(h, temperature, 1);
  bool accepted = words.at()[wordAccepted] == 1, starts = ProposalSchedule{evaluations, false}.starts(stepOf(header));
  Address noise = addressOf(header, stream);
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<double> theta = load(w.at(), i, count), from = load(position.at(), i, count), s = load(accepted ? dw.at() : slope.at(), i, count);
    acceptOrReject(accepted, theta, from);
    if (starts) {
      Quad<double> z = wide(normals(noise, i / 4));
#pragma unroll
      for (int k = 0; k < 4; k++) theta.v[k] = descend(theta.v[k], h, s.v[k]) + scale * z.v[k];
    }
    store(w.at(), i, count, theta);
    store(position.at(), i, count, from);
    store(slope.at(), i, count, s);
    return dot(from, s);
  });
}
UPDATE(mala_move_f64, double,
       (Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> position, InOut<double> slope, In<double> words,
        Header header, BlockRange n, double temperature, int evaluations, unsigned stream),
       malaMove(statistics, w, dw, position, slope, words, header, n, temperature, evaluations, stream))
