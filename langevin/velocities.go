package langevin

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// kinetic is d times the kinetic temperature of d velocities at the beginning of the step: Mass/h
// times the sum of their squares, where h is the step size of the previous step, which made them.
// It is 0 at step 0, and after a step of size 0. Inputs: v, rates by step, header. Output: [tiles].
type kinetic struct {
	Mass     float64
	DataSize int
}

func (kinetic) Name() string { return "kinetic temperature" }

func (kinetic) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 3 || len(in[1]) != 1 || len(in[2]) != 1 {
		return nil, errors.Errorf("must have velocities, a table and the header, got shapes %v", in)
	}
	return tensor.Shape{op.UpdateTiles(in[0].Elements())}, nil
}

func (k kinetic) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("kinetic_fwd", op.UpdateGrid(n), op.UpdateHost(l, n, k, kineticTile[float32], kineticTile[float64]),
		l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(n), tensor.Int(l.Shapes[1][0]), tensor.Float(l.DType, k.Mass), tensor.Int(k.DataSize))
}

func kineticTile[T float32 | float64](k kinetic, a *tensor.Args, lo, hi int) float64 {
	rate := rateBefore(tensor.Slice[T](a, 2), tensor.Slice[uint64](a, 3))
	if rate == 0 {
		return 0
	}
	squares := 0.0
	v := tensor.Slice[T](a, 1)[lo:hi]
	for from := 0; from < len(v); from += random.BlockSize {
		block := v[from:min(from+random.BlockSize, len(v))]
		squares += virial(block, block)
	}
	// The rate is h N, so that N/rate is 1/h.
	return squares * k.Mass * float64(k.DataSize) / rate
}

// rateBefore returns the rate of the previous step, 0 at step 0.
func rateBefore[T float32 | float64](rates []T, header []uint64) float64 {
	step := header[graph.HeaderStep]
	if step == 0 {
		return 0
	}
	return float64(rates[min(step, uint64(len(rates)))-1])
}

// kickedKinetic is d times the mean of the kinetic temperatures before and after the step's kick,
// the sum of v v + (v - h gU)^2 over 2 h, with h and zeros as in kinetic. Inputs: v, w and dw of
// v's shape, rates by step, header. Output: [tiles].
type kickedKinetic struct {
	Prior    Prior
	DataSize int
}

func (kickedKinetic) Name() string { return "kinetic temperature" }

func (kickedKinetic) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 5 || !in[0].Equal(in[1]) || !in[0].Equal(in[2]) || len(in[3]) != 1 || len(in[4]) != 1 {
		return nil, errors.Errorf("must have velocities, parameters and gradients of one shape, a table and the header, got shapes %v", in)
	}
	return tensor.Shape{op.UpdateTiles(in[0].Elements())}, nil
}

func (k kickedKinetic) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("kicked_kinetic_fwd", op.UpdateGrid(n), op.UpdateHost(l, n, k, kickedTile[float32], kickedTile[float64]), append([]tensor.Argument{
		l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), l.In(4), tensor.Int(n), tensor.Int(l.Shapes[3][0]),
	}, k.Prior.KernelArguments(l.DType, k.DataSize)...)...)
}

// kickedTile returns a tile's part of the sum, from the squares of velocities before and after the
// kick by the present gradient.
func kickedTile[T float32 | float64](k kickedKinetic, a *tensor.Args, lo, hi int) float64 {
	rates, header := tensor.Slice[T](a, 4), tensor.Slice[uint64](a, 5)
	// The temperature is in units of the step size that made v, as in kinetic; the kick has the
	// present one.
	before := rateBefore(rates, header)
	if before == 0 {
		return 0
	}
	rate, term := op.Entry(rates, header), priorTermOf[T](k.Prior, k.DataSize)
	v, w, dw := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi], tensor.Slice[T](a, 3)[lo:hi]
	var gradients [random.BlockSize]T
	squares := 0.0
	for from := 0; from < len(v); from += random.BlockSize {
		v, w, dw := v[from:min(from+random.BlockSize, len(v))], w[from:], dw[from:]
		g := gradients[:len(v)]
		term.fill(g, w, dw)
		for i := range g {
			g[i] = op.Descend(v[i], rate, g[i])
		}
		// g now holds the velocities after the kick.
		squares += virial(v, v) + virial(g, g)
	}
	return squares / 2 * float64(k.DataSize) / before
}
