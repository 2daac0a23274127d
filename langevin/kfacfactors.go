package langevin

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// factorsUpdate is the op that updates the factors of K-FAC and their whiteners, for one side or
// two, the input side first. Inputs, for each side: the factor A and its whitener P, of shape [n
// n], and data x [B n ...]; then the header. Output: [sides], the means of the factors' diagonals.
//
//	A <- Alpha A + (1 - Alpha) Scale x'x,    A = Scale x'x at the first step
//	P (A + damping I) P' = I
//
// where x'x sums over all axes except the second, and P is lower triangular. P is computed at every
// Refresh-th step, beginning with the first, and at the last step before FreezeAt. From FreezeAt on
// nothing changes. With two factors the dampings are sqrt(Damping) times pi and 1/pi, where pi^2 is
// the ratio of the means of their diagonals (Martens and Grosse 2015, section 6.3); a single factor
// has Damping itself.
type factorsUpdate struct {
	Alpha, Damping    float64
	Refresh, FreezeAt int
	Scales            [2]float64
}

const sideInputs = 3 // inputs of a side: factor, whitener, data

func (factorsUpdate) Name() string { return "kfac factors" }

// sides returns the number of sides: 1 for a bias, else 2.
func (u factorsUpdate) sides() int {
	if u.Scales[1] == 0 {
		return 1
	}
	return 2
}

func (u factorsUpdate) Updates() []int {
	return []int{0, 1, sideInputs, sideInputs + 1}[:2*u.sides()]
}

func (u factorsUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	sides := u.sides()
	if len(in) != sideInputs*sides+1 {
		return nil, errors.Errorf("must have factor, whitener and data of %d sides, and the header, got %d inputs", sides, len(in))
	}
	for s := range sides {
		factor, whitener, data := in[sideInputs*s], in[sideInputs*s+1], in[sideInputs*s+2]
		if len(data) != 2 && len(data) != 4 || !factor.Equal(tensor.Shape{data[1], data[1]}) || !whitener.Equal(factor) {
			return nil, errors.Errorf("side %d must have factor and whitener [n n] and data [B n] or [B n P Q], got %v, %v and %v", s, factor, whitener, data)
		}
		if _, err := planProducts(data); err != nil {
			return nil, err
		}
	}
	return tensor.Shape{sides}, nil
}

// planProducts returns the plan of x'x.
func planProducts(data tensor.Shape) (kernel.Routine, error) {
	if len(data) == 2 {
		return kernel.Gemm{M: data[1], K: data[0], N: data[1], TransposeA: true}.Plan()
	}
	return kernel.Conv2D{
		B: data[0], C: data[1], H: data[2], W: data[3], K: data[1], R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
	}.BackwardFilter()
}

// products returns the plan of x'x for data that Shape has accepted.
func products(data tensor.Shape) kernel.Routine {
	plan, err := planProducts(data)
	if err != nil {
		panic(errors.Wrap(err, "langevin: kfac: a shape passed Shape that its kernel refuses"))
	}
	return plan
}

func (u factorsUpdate) Lower(l *graph.Lowering) {
	arguments := []tensor.Argument{l.Out()}
	for s := range u.sides() {
		at := sideInputs * s
		arguments = append(arguments, l.InOut(at), l.InOut(at+1), l.In(at+2))
	}
	arguments = append(arguments, l.In(len(l.Shapes)-1))
	for s := range u.sides() {
		data := l.Shapes[sideInputs*s+2]
		arguments = append(arguments, tensor.Int(data[0]), tensor.Int(data[1]), tensor.Int(data.Elements()/(data[0]*data[1])),
			tensor.Float(tensor.Float64, u.Scales[s]))
	}
	arguments = append(arguments, tensor.Float(tensor.Float64, u.Alpha), tensor.Float(tensor.Float64, u.Damping), tensor.Int(u.Refresh), tensor.Int(u.FreezeAt))
	host := graph.Pick(l, factorsHost[float32], factorsHost[float64])
	l.EmitCalls("kfac_factors_update", u.calls(l), host(u, l.Shapes), arguments...)
}

// The GPU's plan of a product: the side of its tiles, the minimal number of terms in a part, the
// maximal numbers of parts and of blocks, and the threads for each row of a factor to whiten.
const (
	factorTile    = 32
	partTerms     = 1024
	maxParts      = 64
	partBlocks    = 1024
	whitenRow     = 4
	whitenThreads = 1024
)

// calls returns each side's products, in parts, and its average, and then the whiteners, which need
// the diagonals of both factors.
func (u factorsUpdate) calls(l *graph.Lowering) []tensor.Call {
	sides := u.sides()
	header, freezeAt := l.In(len(l.Shapes)-1), tensor.Int(u.FreezeAt)
	var calls []tensor.Call
	for s := range sides {
		data, at := l.Shapes[sideInputs*s+2], sideInputs*s
		batch, n, width := data[0], data[1], data.Elements()/(data[0]*data[1])
		side := (n + factorTile - 1) / factorTile
		// A product of few large tiles is divided into parts, each over some of the terms, so that
		// all of a GPU works on it.
		parts := max(1, min((batch*width+partTerms-1)/partTerms, maxParts, partBlocks/(side*side)))
		products := tensor.NewWorkspace(l.DType, parts*n*n)
		calls = append(calls,
			l.Call("kfac_products", tensor.Blocks{Count: side * side, Parts: parts, Threads: op.SumThreads},
				tensor.Out(products), l.In(at+2), header, tensor.Int(batch), tensor.Int(n), tensor.Int(width), freezeAt),
			l.Call("kfac_average", tensor.Blocks{Count: (n*n + op.SumThreads - 1) / op.SumThreads, Threads: op.SumThreads},
				l.InOut(at), tensor.In(products), header, tensor.Int(n), tensor.Int(parts),
				tensor.Float(tensor.Float64, u.Scales[s]), tensor.Float(tensor.Float64, u.Alpha), freezeAt))
	}
	for s := range sides {
		at, other := sideInputs*s, sideInputs*(sides-1-s)
		n := l.Shapes[at][0]
		means := tensor.InOut(l.Out().Buffer)
		calls = append(calls, l.Call("kfac_whiten", tensor.Block(min(whitenRow*n, whitenThreads)),
			means, l.InOut(at+1), l.In(at), l.In(other), tensor.InOut(tensor.NewWorkspace(l.DType, n)), header,
			tensor.Int(s), tensor.Int(sides), tensor.Int(n), tensor.Int(l.Shapes[other][0]),
			tensor.Float(tensor.Float64, u.Damping), tensor.Int(u.Refresh), freezeAt))
	}
	return calls
}

// factorsHost returns a kernel with the phases of each side's product, one phase that averages
// rows, and one that whitens sides. The workspace holds the workspace of the products, followed by
// their results.
func factorsHost[T float32 | float64](u factorsUpdate, shapes []tensor.Shape) tensor.HostKernel {
	var host tensor.HostKernel
	plans, sizes := make([]kernel.Routine, u.sides()), make([]int, u.sides())
	// The sides run one after the other and share the routines' workspace, but not their results.
	own, scratch, results, rows := 0, 0, 0, 0
	for s := range plans {
		plans[s], sizes[s] = products(shapes[sideInputs*s+2]), shapes[sideInputs*s][0]
		own, scratch = max(own, plans[s].Workspace), max(scratch, plans[s].Scratch, sizes[s])
		results, rows = results+sizes[s]*sizes[s], rows+sizes[s]
	}
	host.Workspace, host.Private = (own+results)*tensor.DTypeOf[T]().Size(), scratch*tensor.DTypeOf[T]().Size()
	add := func(tiles int, run func(a *tensor.Args, tile int, step uint64)) {
		host.Phases = append(host.Phases, tensor.Phase{Tiles: tiles, Run: func(a *tensor.Args, tile int) {
			run(a, tile, tensor.Slice[uint64](a, 1+sideInputs*len(plans))[graph.HeaderStep])
		}})
	}
	from, freeze := own, uint64(u.FreezeAt)
	for s, n := range sizes {
		plan, first, last := &plans[s], from, from+n*n
		for phase, tiles := range plan.Phases {
			add(tiles, func(a *tensor.Args, tile int, step uint64) {
				if step >= freeze {
					return
				}
				x, workspace := tensor.Slice[T](a, sideInputs*s+3), tensor.Workspace[T](a)
				kernel.Run(plan, phase, tile, kernel.Operands[T]{
					A: x, B: x, Out: workspace[first:last], Workspace: workspace[:own], Scratch: tensor.Private[T](a),
				})
			})
		}
		from = last
	}
	add(rows, func(a *tensor.Args, row int, step uint64) {
		if step < freeze {
			averageRow(u, a, tensor.Workspace[T](a)[own:], sizes, row, step)
		}
	})
	add(len(plans), func(a *tensor.Args, side int, step uint64) {
		means := diagonalMeans[T](a, sizes)
		tensor.Slice[T](a, 0)[side] = T(means[side])
		if step < freeze && (step%uint64(u.Refresh) == 0 || step == freeze-1) {
			factor, whitener := tensor.Slice[T](a, 1+sideInputs*side), tensor.Slice[T](a, 2+sideInputs*side)
			whiten(whitener, factor, tensor.Private[T](a)[:sizes[side]], u.dampingOf(side, means))
		}
	})
	return host
}

// averageRow updates one row of a factor. row counts the rows of the first side, then of the
// second.
func averageRow[T float32 | float64](u factorsUpdate, a *tensor.Args, products []T, sizes []int, row int, step uint64) {
	side := 0
	if row >= sizes[0] {
		side, row, products = 1, row-sizes[0], products[sizes[0]*sizes[0]:]
	}
	// The first step has no factor to keep: averaging it with zeros would make it too small.
	keep, scale := T(u.Alpha), T((1-u.Alpha)*u.Scales[side])
	if step == 0 {
		keep, scale = 0, T(u.Scales[side])
	}
	n := sizes[side]
	product, average := products[row*n:(row+1)*n], tensor.Slice[T](a, 1+sideInputs*side)[row*n:(row+1)*n]
	for i, v := range average {
		average[i] = T(keep*v) + T(scale*product[i])
	}
}

// diagonalMeans returns the means of the factors' diagonals.
func diagonalMeans[T float32 | float64](a *tensor.Args, sizes []int) (means [2]float64) {
	for s, n := range sizes {
		for i, factor := 0, tensor.Slice[T](a, 1+sideInputs*s); i < n; i++ {
			means[s] += float64(factor[i*n+i]) / float64(n)
		}
	}
	return means
}

// dampingOf returns the number added to the diagonal of a side's factor. pi is 1 where a factor is
// 0.
func (u factorsUpdate) dampingOf(side int, means [2]float64) float64 {
	if u.sides() == 1 {
		return u.Damping
	}
	pi := 1.0
	if means[0] > 0 && means[1] > 0 {
		pi = math.Sqrt(means[0] / means[1])
	}
	if side == 1 {
		pi = 1 / pi
	}
	return math.Sqrt(u.Damping) * pi
}
