package mcmc

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// A step of the program evaluates U and its gradient g at a theta and does everything that follows
// from them: the last B of the step that ended here, the first B of the next step, A, O and A. The
// directions of both A are linear combinations of the present direction u, of g and of the noise z.
// Their coefficients follow from the dot products of these three (mclmcProducts, mclmcDecide), and
// then each element moves once (mclmcMove).

// The words of a chain under MCLMC. The state mclmcState has their values before the step, the
// output of mclmcDecide those after it.
const (
	mclmcStep      = iota // the step size
	mclmcPotential        // U
	mclmcKinetic          // the kinetic energy that the first B of the next step adds
	mclmcError            // of the energy, in the step that ended here
	mclmcSum              // weighted sum of the squared errors over the sixth powers of their steps
	mclmcWeight           // the sum of the weights
	mclmcU                // the factors of u and of g in the direction of the first A
	mclmcG
	mclmcKept   // the factor of that direction in the direction of the second A
	mclmcSpread // the factor of z in it
	mclmcWords
)

const mclmcState = "mclmc"

// mclmcTraced are the words that are recorded and traced.
var mclmcTraced = []tracedWord{{TracePotential, mclmcPotential}, {TraceStepSize, mclmcStep}, {TraceEnergyError, mclmcError}}

// The dot products that a tile sums: g.g, u.g, u.u, u.z, g.z and z.z.
const (
	sumGG = iota
	sumUG
	sumUU
	sumUZ
	sumGZ
	sumZZ
	mclmcSums
)

// mclmcProducts are the dot products of u, g and the stream's noise z: u and g of one shape, header
// -> [tiles 6], flat.
type mclmcProducts struct{ stream uint16 }

func (mclmcProducts) Name() string { return "mclmc share" }

func (mclmcProducts) Shape(in []tensor.Shape) (tensor.Shape, error) {
	tiles, err := op.UpdateShape(in, 0, 0)
	if err != nil {
		return nil, err
	}
	return tensor.Shape{mclmcSums * tiles[0]}, nil
}

func (s mclmcProducts) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("mclmc_share", op.UpdateGrid(n), tensor.HostKernel{Phases: []tensor.Phase{{
		Tiles: l.Out().Buffer.Elements / mclmcSums,
		Run:   func(a *tensor.Args, tile int) { s.tile(a, tile, n) },
	}}}, l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(n), tensor.Uint(uint32(s.stream)))
}

// tile writes a tile's part of the six products of the direction u, the gradient g and the noise z.
// All operations of the next move on whole vectors, such as normalising u, follow from these
// products, so that the move itself needs no sum over the weights.
func (s mclmcProducts) tile(a *tensor.Args, tile, n int) {
	lo, hi := op.TileOfUpdate(n, tile)
	u, g := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	address := op.AddressOf(tensor.Slice[uint64](a, 3), s.stream)
	var noise [random.BlockSize]float64
	var sums [mclmcSums]float64
	for from := 0; from < len(u); from += random.BlockSize {
		u, g := u[from:min(from+random.BlockSize, len(u))], g[from:]
		z := noise[:len(u)]
		random.Normals(z, lo+from, address)
		for i := range u {
			sums[sumGG] += float64(g[i] * g[i])
			sums[sumUG] += float64(u[i] * g[i])
			sums[sumUU] += float64(u[i] * u[i])
			sums[sumUZ] += float64(u[i] * z[i])
			sums[sumGZ] += float64(g[i] * z[i])
			sums[sumZZ] += float64(z[i] * z[i])
		}
	}
	copy(tensor.Slice[float64](a, 0)[mclmcSums*tile:], sums[:])
}

// mclmcDecide turns the direction of a chain and adapts its step size. Inputs: U scalar, the
// chain's words, header, the products of each parameter. Output: the words after the step, which
// also overwrite the input.
type mclmcDecide struct {
	dynamics    MCLMC
	dimensions  int
	warmup      int
	temperature float64
}

func (mclmcDecide) Name() string   { return "mclmc decide" }
func (mclmcDecide) Updates() []int { return []int{1} }

func (mclmcDecide) Shape(in []tensor.Shape) (tensor.Shape, error) {
	words := tensor.Shape{mclmcWords}
	if len(in) < 4 || len(in[0]) != 0 || !in[1].Equal(words) {
		return nil, errors.Errorf("must have a scalar, %v, the header and sums, got shapes %v", words, in)
	}
	return words, nil
}

func (d mclmcDecide) Lower(l *graph.Lowering) {
	buffers := []tensor.Argument{l.Out(), l.In(0), l.InOut(1), l.In(2)}
	attributes := []tensor.Argument{
		tensor.Int(d.dimensions), tensor.Int(d.warmup), tensor.Int(d.coarseSteps()), tensor.Float(l.DType, d.temperature),
		tensor.Float(l.DType, d.noise()), tensor.Float(l.DType, d.energyVariance()),
	}
	total := tensor.NewWorkspace(tensor.Float64, mclmcSums)
	var sums []tensor.Argument
	var calls []tensor.Call
	for i, shape := range l.Shapes[3:] {
		begins := 0
		if i == 0 {
			begins = 1
		}
		sums = append(sums, l.In(3+i))
		tiles := shape.Elements() / mclmcSums
		calls = append(calls, l.Call("mclmc_sum", tensor.Block(min(tiles, op.SumThreads)),
			tensor.InOut(total), sums[i], tensor.Int(tiles), tensor.Int(begins)))
	}
	calls = append(calls, l.Call("mclmc_decide", tensor.Block(1), slices.Concat(buffers, []tensor.Argument{tensor.In(total)}, attributes)...))
	l.EmitCalls("mclmc_decide", calls, tensor.Single(func(a *tensor.Args) { d.run(a, len(sums)) }), slices.Concat(buffers, sums, attributes)...)
}

// noise returns O's n.
func (d mclmcDecide) noise() float64 {
	return math.Sqrt(math.Expm1(2*d.dynamics.Friction) / float64(d.dimensions))
}

// energyVariance returns the variance of the energy's error in a step, divided by d. The step size
// adapts to it.
func (d mclmcDecide) energyVariance() float64 {
	if most := d.dynamics.MaxVariance; most > 0 {
		return min(d.dynamics.EnergyVariance, most/float64(d.dimensions))
	}
	return d.dynamics.EnergyVariance
}

func (d mclmcDecide) run(a *tensor.Args, parameters int) {
	words, step := tensor.Slice[float64](a, 2), tensor.Slice[uint64](a, 3)[graph.HeaderStep]
	var sums [mclmcSums]float64
	for i := range parameters {
		for at, v := range tensor.Slice[float64](a, 4+i) {
			sums[at%mclmcSums] += v
		}
	}
	d.turn(words, sums, tensor.Slice[float64](a, 1)[0], step)
	copy(tensor.Slice[float64](a, 0), words)
}

// turn makes the last B of the step that ended here, the first B of the next one, and O.
func (d mclmcDecide) turn(words []float64, sums [mclmcSums]float64, potential float64, step uint64) {
	norm := math.Sqrt(sums[sumGG])
	turn := turning{u: 1 / math.Sqrt(sums[sumUU]), norm: norm, rate: norm / (2 * d.temperature * float64(d.dimensions-1))}
	turn.along = turn.towards(turn.u * sums[sumUG])
	if step > 0 {
		kinetic := words[mclmcKinetic] + turn.kick(words[mclmcStep])
		words[mclmcError] = (potential-words[mclmcPotential])/d.temperature + float64(float64(d.dimensions-1)*kinetic)
		if step <= uint64(d.warmup) {
			d.adapt(words, step)
		}
	}
	words[mclmcKinetic] = turn.kick(words[mclmcStep])
	words[mclmcPotential] = potential
	noise := d.noise()
	across := float64(turn.u*sums[sumUZ]) + float64(turn.g*sums[sumGZ])
	length := math.Sqrt(1 + 2*float64(noise*across) + float64(noise*noise*sums[sumZZ]))
	words[mclmcU], words[mclmcG] = turn.u, turn.g
	words[mclmcKept], words[mclmcSpread] = 1/length, noise/length
}

// turning is a direction as a linear combination of u and g.
type turning struct {
	u, g       float64
	along      float64 // its component along e = -g/|g|
	norm, rate float64 // |g|, and x of B for a step of 1
}

// towards returns the component along e of a vector, given its dot product with g; 0 where g is 0.
func (t *turning) towards(product float64) float64 {
	if t.norm == 0 {
		return 0
	}
	return -product / t.norm
}

// kick is B. It returns log(cosh x + e.u sinh x), computed from exp(-x), which does not overflow.
func (t *turning) kick(step float64) float64 {
	x := step * t.rate
	if x == 0 {
		return 0
	}
	along := max(-1, min(1, t.along))
	shrink := math.Exp(-x)
	whole := 1 + along + float64(shrink*shrink*(1-along))
	keep := 2 * shrink / whole
	t.u, t.g = keep*t.u, keep*t.g
	t.g -= (1 - shrink) * (1 + shrink + float64(along*(1-shrink))) / whole / t.norm
	t.along = (1 + along - float64(shrink*shrink*(1-along))) / whole
	return x - math.Ln2 + math.Log(whole)
}

// The adaptation of the step size. An error that asks for e^x times the step size has the weight
// exp(-(x/mclmcTrust)^2/2), as in Robnik et al. In the first third of a warm-up an error below the
// target multiplies the step size by exp(mclmcGrow). An error above it, which is half as frequent
// for a normal distribution of the target variance, divides it by exp(2 mclmcGrow).
const (
	mclmcTrust = 1.5
	mclmcGrow  = 0.2
)

// coarseSteps returns the number of warm-up steps in which it only matters whether the error is
// above or below the target.
func (d mclmcDecide) coarseSteps() int { return d.warmup / 3 }

// adapt updates the step size by the error of the previous step. made is the number of warm-up
// steps made.
func (d mclmcDecide) adapt(words []float64, made uint64) {
	size, failure := words[mclmcStep], words[mclmcError]
	excess := failure * failure / (float64(d.dimensions) * d.energyVariance())
	learned := float64(made) - float64(d.coarseSteps())
	switch {
	case !(excess < math.Inf(1)):
		words[mclmcStep] = size * math.Exp(-2*mclmcGrow)
	case learned <= 0 && excess < 1:
		words[mclmcStep] = size * math.Exp(mclmcGrow)
	case learned <= 0:
		words[mclmcStep] = size * math.Exp(-2*mclmcGrow)
	default:
		memory := max(20, learned/2)
		keep := (memory - 1) / (memory + 1)
		off := math.Log(excess+1e-8) / (6 * mclmcTrust)
		weight := math.Exp(-off * off / 2)
		cube := size * size * size
		words[mclmcSum] = float64(keep*words[mclmcSum]) + weight*excess/(cube*cube)
		words[mclmcWeight] = float64(keep*words[mclmcWeight]) + weight
		words[mclmcStep] = math.Exp(-math.Log(words[mclmcSum]/words[mclmcWeight]) / 6)
	}
}

// mclmcMove keeps theta as the position, turns the direction, and makes A before and after O.
// Inputs: w, dw, u and the position of one shape, the chain's words, header. Output: the sum of
// theta * g at the position, by tile.
type mclmcMove struct{ stream uint16 }

func (mclmcMove) Name() string   { return "mclmc move" }
func (mclmcMove) Updates() []int { return []int{0, 2, 3} }

func (mclmcMove) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 2, 1) }

func (m mclmcMove) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("mclmc_move", op.UpdateGrid(n), op.UpdateHost(l, n, m, nil, mclmcMove.tile),
		l.Out(), l.InOut(0), l.In(1), l.InOut(2), l.InOut(3), l.In(4), l.In(5), tensor.Int(n), tensor.Uint(uint32(m.stream)))
}

// tile moves a tile by half a step along the direction before the noise and half a step along that
// after it.
func (m mclmcMove) tile(a *tensor.Args, lo, hi int) float64 {
	w, g := tensor.Slice[float64](a, 1)[lo:hi], tensor.Slice[float64](a, 2)[lo:hi]
	u, position := tensor.Slice[float64](a, 3)[lo:hi], tensor.Slice[float64](a, 4)[lo:hi]
	words := tensor.Slice[float64](a, 5)
	half, keep, pull, kept, spread := words[mclmcStep]/2, words[mclmcU], words[mclmcG], words[mclmcKept], words[mclmcSpread]
	address := op.AddressOf(tensor.Slice[uint64](a, 6), m.stream)
	var noise [random.BlockSize]float64
	virial := 0.0
	for from := 0; from < len(w); from += random.BlockSize {
		to := min(from+random.BlockSize, len(w))
		z := noise[:to-from]
		random.Normals(z, lo+from, address)
		for i := from; i < to; i++ {
			virial += float64(w[i] * g[i])
			position[i] = w[i]
			before := float64(keep*u[i]) + float64(pull*g[i])
			u[i] = float64(kept*before) + float64(spread*z[i-from])
			w[i] += float64(half * float64(before+u[i]))
		}
	}
	return virial
}
