package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// SGLD is stochastic gradient Langevin dynamics (Welling and Teh 2011, equation 4, with h = epsilon/2):
//
//	theta <- theta - h gU + sqrt(2 h T) xi,    xi ~ N(0, 1),    gU = N (gradient of the mean loss) + slope of the prior
//
// It targets exp(-U/T). On a quadratic U of curvature k the discretised chain has variance T/(k (1 - hk/2)), a relative excess of hk/2;
// the noise of the minibatch adds h^2 Var(gU) to each step and is not corrected for. There is no Metropolis test.
// At T = 0 it is optimizers.SGD with the rate h N, bit for bit.
type SGLD struct{}

// Name implements Sampler.
func (SGLD) Name() string { return "sgld" }

// Validate implements Sampler.
func (SGLD) Validate() error { return nil }

// Update implements Sampler.
func (SGLD) Update(b *graph.Builder, f Force, parameter, gradient *graph.Node) *graph.Node {
	update := sgldUpdate{dataSize: f.DataSize, prior: f.Prior, stream: b.Stream()}
	return b.Apply(update, parameter, gradient, f.Rates, f.Temperatures, b.Header())
}

// sgldUpdate is SGLD's move of w: w, dw of w's shape, rates and temperatures by step, header -> statistics, see op.UpdateShape.
type sgldUpdate struct {
	dataSize int
	prior    Prior
	stream   uint16
}

func (sgldUpdate) Name() string   { return "sgld update" }
func (sgldUpdate) Updates() []int { return []int{0} }

func (u sgldUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	return op.UpdateShape(in, 0, 2)
}

func (u sgldUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	host := graph.Pick(l, op.UpdateHost[float32](n, sgldTile[float32](u)), op.UpdateHost[float64](n, sgldTile[float64](u)))
	l.Emit("sgld_update", n, host, append([]tensor.Argument{
		l.Out(), l.InOut(0), l.In(1), l.In(2), l.In(3), l.In(4), tensor.Int(n), tensor.Int(l.Shapes[2][0]),
		tensor.Uint(uint32(u.stream)),
	}, priorArguments(l.DType, u.prior, u.dataSize)...)...)
}

// priorArguments are how kernels get the prior and N: family, the two numbers of the slope, and N.
func priorArguments(dtype tensor.DType, p Prior, dataSize int) []tensor.Argument {
	return []tensor.Argument{
		tensor.Int(int(p.Kind)), tensor.Real(dtype, p.Scale), tensor.Real(dtype, p.Freedom), tensor.Int(dataSize),
	}
}

func sgldTile[T float32 | float64](u sgldUpdate) func(a *tensor.Args, lo, hi int) float64 {
	return func(a *tensor.Args, lo, hi int) float64 {
		header := tensor.Slice[uint64](a, 5)
		rate, temperature := op.Entry(tensor.Slice[T](a, 3), header), op.Entry(tensor.Slice[T](a, 4), header)
		scale := T(noiseScale(float64(rate)/float64(u.dataSize), float64(temperature), 1))
		w, dw := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
		address := op.AddressOf(header, u.stream)
		var z [random.BlockSize]float32
		virial := 0.0
		for from := 0; from < len(w); from += random.BlockSize {
			to := min(from+random.BlockSize, len(w))
			virial += descend(w[from:to], dw[from:to], rate, u.prior, u.dataSize)
			if temperature == 0 {
				continue
			}
			random.NormalBlock(address, (lo+from)/random.BlockSize, &z)
			for i := range w[from:to] {
				w[from+i] += T(scale * T(z[i]))
			}
		}
		return virial
	}
}

// noiseScale is the standard deviation of the noise that balances a drift of -h G gU at temperature T. It is the one place where
// this is computed.
func noiseScale(h, temperature, preconditioner float64) float64 {
	return math.Sqrt(2 * h * temperature * preconditioner)
}

// descend moves w against the gradient of U/N by rate, and returns the sum of w times that gradient before the move.
func descend[T float32 | float64](w, dw []T, rate T, prior Prior, dataSize int) float64 {
	virial := 0.0
	if prior.Kind == FlatPrior || prior.Kind == GaussianPrior {
		decay := T(decayOf(prior, dataSize))
		for i, theta := range w {
			g := op.Decayed(dw[i], theta, decay)
			virial += float64(theta) * float64(g)
			w[i] = op.Descend(theta, rate, g)
		}
		return virial
	}
	for i, theta := range w {
		g := slopeOf(dw[i], theta, prior, dataSize)
		virial += float64(theta) * float64(g)
		w[i] = op.Descend(theta, rate, g)
	}
	return virial
}

// decayOf is a Gaussian prior as weight decay on the mean loss: 1/(N s^2).
func decayOf(prior Prior, dataSize int) float64 {
	if prior.Kind == FlatPrior {
		return 0
	}
	return 1 / (float64(dataSize) * prior.Scale * prior.Scale)
}

// slopeOf is the gradient of U/N for any prior.
func slopeOf[T float32 | float64](dw, theta T, prior Prior, dataSize int) T {
	return dw + T(prior.slope(float64(theta))/float64(dataSize))
}
