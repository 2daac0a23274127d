// Hamiltonian Monte Carlo's trajectories, in double only, see mcmc/hmc.go: momenta p ~ N(0, T M),
// then leapfrog steps p <- p - e dw, theta <- theta + e p/M, with half kicks at the beginning and
// the end. Kernels with masses take the diagonal of M as an argument; the others have M = 1.
#include "metropolis.cuh"

// NoMasses and Masses provide the diagonal of M.
//
// Everything is in double, since the acceptance test needs the error of an energy: the difference
// of two numbers of the size of the number of parameters, which must be right to a fraction of 1.
struct NoMasses {
  INLINE Quad<double> at(int, int) const { return {{1, 1, 1, 1}}; }
};
struct Masses {
  In<double> masses;

  INLINE Quad<double> at(int i, int count) const {
    Quad<double> m = load((const double*)masses.at(), i, count);
#pragma unroll
    for (int k = 1; k < 4; k++)
      if (k >= count) m.v[k] = 1;
    return m;
  }
};

// kineticLogRatio writes each tile's part of (K at the trajectory's start - K at its end)/T at the
// step that ends a trajectory, with K(p) = p' M^-1 p / 2. It draws the start's momenta again from
// their address instead of storing them.
template <class M>
INLINE void kineticLogRatio(Out<double> logRatios, In<double> p, In<double> dw, In<double> words, M masses, Header header, BlockRange n, int evaluations,
                  double temperature, unsigned stream) {
  Address noise = addressOf(header, stream);
  bool decides = ProposalSchedule{evaluations, false}.decides(noise.step);
  // The trajectory began evaluations steps ago: that step's address gives its momenta again.
  noise.step -= evaluations;
  double half = words.at()[wordStep] / 2;
  tiles(n, [&](int tile) INLINED {
    double sum = !decides ? 0 : tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<double> momentum = load(p.at(), i, count), g = load(dw.at(), i, count), z = wide(normals(noise, i / 4)), m = masses.at(i, count);
      double start = 0, end = 0;
#pragma unroll
      for (int k = 0; k < 4; k++) {
        if (k >= count) continue;
        double last = descend(momentum.v[k], half, g.v[k]);
        start += z.v[k] * z.v[k];
        end += last * last / m.v[k];
      }
      return start - end / temperature;
    });
    storeTile(logRatios, tile, sum / 2);
  });
}

// kineticEnergy writes each tile's part of K/T at the trajectory's start, half the sum of squares of
// the normals that its momenta are made of, at the step that ends the trajectory.
INLINE void kineticEnergy(Out<double> energies, Header header, BlockRange n, int evaluations, unsigned stream) {
  Address noise = addressOf(header, stream);
  bool decides = ProposalSchedule{evaluations, false}.decides(noise.step);
  noise.step -= evaluations;
  tiles(n, [&](int tile) INLINED {
    double sum = !decides ? 0 : tileSum(n, tile, [&](int i, int count) INLINED {
      Quad<double> z = wide(normals(noise, i / 4));
      double squares = 0;
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (k < count) squares += z.v[k] * z.v[k];
      return squares;
    });
    storeTile(energies, tile, sum / 2);
  });
}

// move makes one leapfrog step. Where a trajectory ends, it first accepts or rejects its end, and
// then starts the next one.
template <class M>
INLINE void move(Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> position, InOut<double> slope, InOut<double> p,
                 In<double> words, M masses, Header header, BlockRange n, int evaluations, double temperature, unsigned stream) {
  Address noise = addressOf(header, stream);
  bool accepted = words.at()[wordAccepted] == 1, starts = ProposalSchedule{evaluations, false}.starts(noise.step);
  double e = words.at()[wordStep];
  update(statistics, n, [&](int i, int count) INLINED {
    Quad<double> theta = load(w.at(), i, count), from = load(position.at(), i, count), s = load(slope.at(), i, count);
    Quad<double> force = load(dw.at(), i, count), momentum = load(p.at(), i, count), m = masses.at(i, count);
    // Inside a trajectory two half kicks of neighbouring leapfrog steps make one whole kick.
    double kick = e;
    if (starts) {
      acceptOrReject(accepted, theta, from);
      if (accepted) s = force;
      Quad<double> z = wide(normals(noise, i / 4));
#pragma unroll
      for (int k = 0; k < 4; k++) momentum.v[k] = z.v[k] * math::sqrt(temperature * m.v[k]);
      kick = e / 2;
      force = s;
      store(position.at(), i, count, from);
      store(slope.at(), i, count, s);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
      momentum.v[k] = descend(momentum.v[k], kick, force.v[k]);
      theta.v[k] += e * (momentum.v[k] / m.v[k]);
    }
    store(p.at(), i, count, momentum);
    store(w.at(), i, count, theta);
    return dot(from, s);
  });
}

// These macros hold the arguments that four kernels have in common, in the order in which
// mcmc/hmc.go passes them. When a program is loaded, cuda/signature.go compares that order with the
// PTX.
#define HMC_SCALARS Header header, BlockRange n, int evaluations, double temperature, unsigned stream
#define HMC_STATE Out<double> statistics, InOut<double> w, In<double> dw, InOut<double> position, InOut<double> slope, InOut<double> p, In<double> words

// Only the kernels with masses have a buffer for them, so that M = 1 costs no memory traffic.
UPDATE(hmc_share_f64, double,
       (Out<double> logRatios, In<double> p, In<double> dw, In<double> words, HMC_SCALARS),
       kineticLogRatio(logRatios, p, dw, words, NoMasses{}, header, n, evaluations, temperature, stream))
UPDATE(hmc_share_masses_f64, double,
       (Out<double> logRatios, In<double> p, In<double> dw, In<double> words, In<double> masses, HMC_SCALARS),
       kineticLogRatio(logRatios, p, dw, words, Masses{masses}, header, n, evaluations, temperature, stream))
UPDATE(hmc_kinetic_f64, double, (Out<double> energies, Header header, BlockRange n, int evaluations, unsigned stream),
       kineticEnergy(energies, header, n, evaluations, stream))
UPDATE(hmc_move_f64, double,
       (HMC_STATE, HMC_SCALARS),
       move(statistics, w, dw, position, slope, p, words, NoMasses{}, header, n, evaluations, temperature, stream))
UPDATE(hmc_move_masses_f64, double,
       (HMC_STATE, In<double> masses, HMC_SCALARS),
       move(statistics, w, dw, position, slope, p, words, Masses{masses}, header, n, evaluations, temperature, stream))
