// Energies of priors: log p(0) - log p(theta) summed over a parameter's elements in double, plus a
// constant; and their gradient. Each tile writes its sum, and prior_energy_join, one block, adds
// them.
#include "prior.cuh"
#include "quad.cuh"
#include "update.cuh"

// Energy is a prior's density, up to its constant.
struct Energy {
  int family;
  double scale, dof, narrow, weight;

  // odds and bend are defined in langevin/priorterm.go.
  INLINE double operator()(double theta) const {
    switch (family) {
      case gaussianPrior: {
        double z = theta / scale;
        return 0.5 * z * z;
      }
      case laplacePrior:
        return math::abs(theta) / scale;
      case studentTPrior:
        return (dof + 1) / 2 * math::log1p(theta * theta / (dof * scale * scale));
      case scaleMixturePrior: {
        double odds = math::log1p(-weight) - math::log(weight) + math::log(scale / narrow), square = theta * theta;
        double bend = (1 / (narrow * narrow) - 1 / (scale * scale)) / 2;
        return square / (scale * scale) / 2 + (math::softplus(odds) - math::softplus(odds - bend * square));
      }
      default:
        return 0;
    }
  }
};

// energies writes one sum per tile, in the tiles of updates.
template <class T>
INLINE void energies(Out<double> partial, In<T> w, int n, Energy energy) {
  int each = updateTile(n), begin = blockIdx.x * each, end = n - begin < each ? n : begin + each;
  double sum = 0;
  for (int i = begin + threadIdx.x; i < end; i += blockDim.x) sum += energy(w.at()[i]);
  sum = blockSum(sum);
  if (threadIdx.x == 0) partial.at()[blockIdx.x] = sum;
}

template <class T>
INLINE void addTiles(Out<T> y, In<double> partial, int tiles, int n, double constant) {
  double sum = 0;
  for (int i = threadIdx.x; i < tiles; i += blockDim.x) sum += partial.at()[i];
  sum = blockSum(sum);
  if (threadIdx.x == 0) y.at()[0] = T(sum + n * constant);
}

// slopes multiplies the prior's gradient by the gradient dout of the energy.
template <class T>
INLINE void slopes(Out<T> dw, In<T> w, In<T> dout, int n, Prior<T> prior) {
  T scale = dout.at()[0];
  mapEach(dw, n, [&](T theta) INLINED { return prior.gradient(T(0), theta) * scale; }, w);
}

#define POTENTIAL(T, suffix)                                                                                                       \
  KERNEL(prior_energy_fwd_##suffix, 256)                                                                                           \
  (Out<double> partial, In<T> w, int n, int family, T scale, T dof, T narrow, T weight) {                                       \
    energies(partial, w, n, Energy{family, scale, dof, narrow, weight});                                                        \
  }                                                                                                                                \
  KERNEL(prior_energy_join_##suffix, 256)(Out<T> y, In<double> partial, int tiles, int n, T constant) {                            \
    addTiles(y, partial, tiles, n, constant);                                                                                          \
  }                                                                                                                                \
  KERNEL(prior_energy_bwd_##suffix, 256)(Out<T> dw, In<T> w, In<T> dout, int n, PRIOR(T)) { slopes(dw, w, dout, n, PRIOR_OF(T)); }

POTENTIAL(float, f32)
POTENTIAL(double, f64)
