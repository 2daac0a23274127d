package op

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// normalizeGradients computes all gradients of a FilterResponseNorm, and of the activation and
// residual after it, in one pass over memory: with u = norm(x), y = max(u, tau) and
// z = silu(y + r),
//
//	ds = dz silu'(y + r)
//	du = ds where y > tau, else 0
//	dx = the gradient of norm by x, for du
//	dgamma[c] = sum of du times the normalised x,  dbeta[c] = sum of du,  dtau[c] = sum of ds - du
//
// and, if x is a convolution with a bias, its gradient dbias[c] = sum of dx. Combine makes it from
// the gradients of the separate ops. It computes y from x again, so that y need not be kept.
//
// Inputs: dz [B C H W], a second term of dz if sum, x [B C H W], gamma [C], then beta and tau [C]
// if threshold, then r [B C H W] if residual. Parts: dgamma, dbeta [C], then dtau [C] if threshold,
// then dbias [C] if bias, then ds [B C H W] if residual.
type normalizeGradients struct {
	epsilon   float64
	threshold bool
	silu      bool // with a threshold only
	residual  bool // with SiLU only
	sum       bool
	bias      bool
}

// Name implements graph.Op.
func (normalizeGradients) Name() string { return "normalization gradients" }

// Shape implements graph.Op.
func (g normalizeGradients) Shape(in []tensor.Shape) (tensor.Shape, error) {
	ranks := []int{4, 4, 1}
	if g.sum {
		ranks = append([]int{4}, ranks...)
	}
	if g.threshold {
		ranks = append(ranks, 1, 1)
	}
	if g.residual {
		ranks = append(ranks, 4)
	}
	if err := checkRanks(in, ranks...); err != nil {
		return nil, err
	}
	for i, rank := range ranks {
		if rank == 4 {
			if err := checkEqual(in[0], in[i]); err != nil {
				return nil, err
			}
		} else if in[i][0] != in[0][1] {
			return nil, errors.Errorf("input %d must have one element for each of %d channels, got %d", i, in[0][1], in[i][0])
		}
	}
	return in[0], nil
}

// Combine implements graph.Combiner: it looks for the other gradients of a FilterResponseNorm, and
// for the gradients that they are computed from.
func (g normalizeBackward) Combine(at graph.Site) (graph.Combination, bool) {
	n, in := g.normalization, at.Inputs()
	du, x, gamma := in[0], in[1], in[2]
	scale, hasScale := userOf(du, normalizeBackwardScale{n}, du, x)
	shift, hasShift := userOf(du, biasBackward{}, du)
	if _, width := planes(x.Shape()); n.groups > 0 || n.center || width < 2 || !hasScale || !hasShift {
		return graph.Combination{}, false
	}
	op := normalizeGradients{epsilon: n.epsilon}
	bias, hasBias := userOf(at, biasBackward{}, at)
	op.bias = hasBias
	gradients, inputs, parts := []graph.Site{du}, []graph.Site{x, gamma}, []graph.Site{scale, shift}
	readers := []graph.Site{at, scale, shift} // that the op replaces
	if ds, more, bound, ok := thresholdOf(n, at, readers); ok {
		op.threshold = true
		gradients, inputs, parts, readers = []graph.Site{ds}, append(inputs, more...), append(parts, bound), []graph.Site{du, bound}
		if dz, r, ok := activationOf(ds, du.Inputs()[1], readers); ok {
			op.silu, op.residual, gradients, readers = true, len(r) > 0, []graph.Site{dz}, []graph.Site{ds}
			inputs = append(inputs, r...)
		}
	}
	if op.bias {
		parts = append(parts, bias)
	}
	if op.residual {
		parts = append(parts, readers[0])
	}
	if last := gradients[0]; last.IsSum() && sameSites(last.Users(), readers) {
		op.sum, gradients = true, last.Inputs()
	}
	return graph.Combination{Op: op, Inputs: append(gradients, inputs...), Parts: parts}, true
}

// thresholdOf looks for a threshold behind the normalization of at: du, the gradient that the
// readers read, must be the threshold's, and must have no other readers except the gradient by
// tau. thresholdOf returns ds, from which du is computed, beta and tau (more), and the gradient by
// tau (bound).
func thresholdOf(n normalization, at graph.Site, readers []graph.Site) (ds graph.Site, more []graph.Site, bound graph.Site, ok bool) {
	du, x, gamma := at.Inputs()[0], at.Inputs()[1], at.Inputs()[2]
	if du.Op() != graph.Op(thresholdBackward{}) {
		return ds, nil, bound, false
	}
	ds, y := du.Inputs()[0], du.Inputs()[1]
	bound, ok = userOf(du, thresholdBackwardBound{}, ds, du)
	if f, is := y.Op().(FilterResponseNorm); !is || !ok || f != (FilterResponseNorm{Epsilon: n.epsilon, threshold: true}) {
		return ds, nil, bound, false
	}
	from := y.Inputs()
	ok = from[0] == x && from[1] == gamma && from[3] == du.Inputs()[2] && sameSites(du.Users(), append(readers[:len(readers):len(readers)], bound))
	return ds, from[2:], bound, ok
}

// activationOf looks for a SiLU behind y. If ds is the gradient of SiLU(y) and only the readers
// read it, activationOf returns dz, from which ds is computed. If ds is the gradient of SiLU(y +
// r), it also returns r, and ds may have other readers.
func activationOf(ds, y graph.Site, readers []graph.Site) (dz graph.Site, r []graph.Site, ok bool) {
	if ds.Op() != graph.Op(unaryBackward{SiLU{}}) {
		return dz, nil, false
	}
	dz, s := ds.Inputs()[0], ds.Inputs()[1]
	if s == y {
		return dz, nil, sameSites(ds.Users(), readers)
	}
	if s.Op() != graph.Op(Add{}) || s.Inputs()[0] != y || !s.Inputs()[1].Shape().Equal(y.Shape()) {
		return dz, nil, false
	}
	return dz, s.Inputs()[1:], true
}

// userOf returns the value op(inputs...) among those that read s.
func userOf(s graph.Site, op graph.Op, inputs ...graph.Site) (graph.Site, bool) {
	users := s.Users()
	i := slices.IndexFunc(users, func(u graph.Site) bool { return u.Op() == op && slices.Equal(u.Inputs(), inputs) })
	if i < 0 {
		return graph.Site{}, false
	}
	return users[i], true
}

// sameSites reports whether both have the same values, in any order.
func sameSites(a, b []graph.Site) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s graph.Site) bool { return !slices.Contains(b, s) })
}

// gradientArguments has the indices of the arguments of normalizeGradients, -1 for absent ones.
type gradientArguments struct {
	dx, ds, dz, other, x, gamma, beta, bounds, r int
}

// Lower implements graph.Op.
func (g normalizeGradients) Lower(l *graph.Lowering) {
	var arguments []tensor.Argument
	add := func(has bool, argument func() tensor.Argument) int {
		if !has {
			return -1
		}
		arguments = append(arguments, argument())
		return len(arguments) - 1
	}
	part, in := 0, 0
	nextPart := func() tensor.Argument { part++; return l.Part(part - 1) }
	nextIn := func() tensor.Argument { in++; return l.In(in - 1) }
	// The host adds up sums after everything else, see tensor.RowTile.
	var at gradientArguments
	add(true, nextPart)
	add(true, nextPart)
	add(g.threshold, nextPart)
	add(g.bias, nextPart)
	at.dx, at.ds = add(true, l.Out), add(g.residual, nextPart)
	at.dz, at.other, at.x, at.gamma = add(true, nextIn), add(g.sum, nextIn), add(true, nextIn), add(true, nextIn)
	at.beta, at.bounds, at.r = add(g.threshold, nextIn), add(g.threshold, nextIn), add(g.residual, nextIn)
	l.EmitCalls("normalize_gradients", g.calls(l, at, arguments), graph.Pick(l, gradientsKernel[float32], gradientsKernel[float64])(g, at, l), arguments...)
}

// maxTables is the maximum number of gradients by parameters: the GPU's kernel has an argument for
// each.
const maxTables = 4

// tables returns the number of gradients by parameters.
func (g normalizeGradients) tables() int {
	n := 2
	for _, more := range []bool{g.threshold, g.bias} {
		if more {
			n++
		}
	}
	return n
}

// The variants of a GPU's kernels for rows, which are the planes of a batch. Some lanes of a warp
// hold a row in registers, rowQuads times four elements each, or read it several times.
const (
	rowThreads = 128 // of a block
	maxLanes   = 32
	shortQuads = 2
	longQuads  = 8
)

// rowKernel returns the ending of the kernel for rows of width elements, the lanes for a row, and
// the grid.
func rowKernel(dtype tensor.DType, rows, width int) (ending string, lanes int, grid tensor.Grid) {
	lanes = maxLanes
	for _, v := range []struct {
		quads  int
		ending string
	}{{shortQuads, "_short"}, {longQuads, "_long"}} {
		if dtype == tensor.Float32 && width%4 == 0 && width <= 4*v.quads*maxLanes {
			for ending = v.ending; lanes > 1 && 4*v.quads*lanes/2 >= width; {
				lanes /= 2
			}
			break
		}
	}
	return ending, lanes, tensor.Blocks{Count: ceilDiv(rows, rowThreads/lanes), Threads: rowThreads}
}

// calls returns a GPU's calls. The first computes everything except the sums over images, for
// which it writes the terms; the second adds these up.
func (g normalizeGradients) calls(l *graph.Lowering, at gradientArguments, a []tensor.Argument) []tensor.Call {
	rows, width := planes(l.Shape)
	images, channels, columns := l.Shape[0], l.Shape[1], g.tables()*l.Shape[1]
	terms := tensor.NewWorkspace(tensor.Float64, images*columns)
	ending, lanes, grid := rowKernel(l.DType, rows, width)
	stem := "normalize_gradients"
	either := func(i, otherwise int) tensor.Argument {
		if i < 0 {
			i = otherwise
		}
		return a[i]
	}
	arguments := []tensor.Argument{tensor.Out(terms), a[at.dx]}
	if g.residual {
		stem, arguments = "normalize_gradients_residual", append(arguments, a[at.ds], a[at.r])
	}
	arguments = append(arguments, a[at.dz], either(at.other, at.dz), a[at.x], a[at.gamma], either(at.beta, at.gamma), either(at.bounds, at.gamma),
		tensor.Int(rows), tensor.Int(channels), tensor.Int(width), tensor.Int(lanes), tensor.Bool(g.sum), tensor.Bool(g.threshold), tensor.Bool(g.silu),
		tensor.Bool(g.bias), tensor.Float(l.DType, g.epsilon))
	sums := a[:g.tables():g.tables()]
	for len(sums) < maxTables {
		sums = append(sums, tensor.Out(tensor.NewWorkspace(l.DType, channels))) // not written
	}
	return []tensor.Call{
		l.Call(stem+ending, grid, arguments...),
		l.Call("normalize_gradient_sums", tensor.Blocks{Count: ceilDiv(columns, sumNeighbours), Threads: SumThreads},
			append(sums, tensor.In(terms), tensor.Int(images), tensor.Int(channels), tensor.Int(columns))...),
	}
}

// gradientBytes is the approximate size of each intermediate result of a host tile, which computes
// a few planes at a time.
const gradientBytes = 32 << 10

// gradientsKernel returns the host's kernel. Its workspace has the terms of the sums of each plane.
func gradientsKernel[T float32 | float64](g normalizeGradients, at gradientArguments, l *graph.Lowering) tensor.HostKernel {
	rows, width := planes(l.Shape)
	some := max(4, min(groupsPerPass, gradientBytes/(width*l.DType.Size())))
	c := SiLU{}.unary()
	slope := graph.Pick(l, any(vjpOf(c.derivative, c.gradients)), any(vjpOf[float64](c.derivative, nil))).(func(dx, dout, v []T))
	host := tensor.RowTiles(rows, l.Shape[1], width, func(a *tensor.Args, lo, hi int) {
		for row := lo; row < hi; row += some {
			gradientsOfPlanes(a, g, at, slope, row, min(row+some, hi), width, some*width)
		}
	})
	host.Private, host.Workspace = 3*some*width*l.DType.Size(), 8*g.tables()*rows
	channels := l.Shape[1]
	host.Phases = append(host.Phases, tensor.Single(func(a *tensor.Args) { gradientTotals[T](a, g.tables(), rows, channels) }).Phases...)
	return host
}

// gradientTotals adds up the terms of all planes of a channel.
func gradientTotals[T float32 | float64](a *tensor.Args, tables, planes, channels int) {
	terms := tensor.Workspace[float64](a)
	for table := range tables {
		totals := tensor.Slice[T](a, table)
		for channel := range totals {
			total := 0.0
			for plane := channel; plane < planes; plane += channels {
				total += terms[plane*tables+table]
			}
			totals[channel] = T(total)
		}
	}
}

// gradientsOfPlanes computes planes [row, end) of a tile. room is the number of elements reserved
// for each intermediate result.
func gradientsOfPlanes[T float32 | float64](
	a *tensor.Args, g normalizeGradients, at gradientArguments, slope func(dx, dout, v []T), row, end, width, room int,
) {
	of := func(argument int) []T { return tensor.Slice[T](a, argument)[row*width : end*width] }
	count, size := end-row, (end-row)*width
	private := tensor.Private[T](a)
	y, sum, masked := private[:size], private[room:room+size], private[2*room:2*room+size]
	var zeros, inverses, products, totals, bounds [groupsPerPass]float64
	x, gamma, ds := of(at.x), tensor.Slice[T](a, at.gamma), of(at.dz)
	moments(x, normalization{epsilon: g.epsilon}, zeros[:count], inverses[:count])
	if g.sum {
		kernel.Add(sum, ds, of(at.other))
		ds = sum
	}
	du := ds
	if g.threshold {
		beta, tau := tensor.Slice[T](a, at.beta), tensor.Slice[T](a, at.bounds)
		var affine [groupsPerPass]kernel.Affine
		var taus [groupsPerPass]T
		for i := range count {
			c := (row + i) % len(gamma)
			affine[i] = kernel.Affine{Scale: float64(gamma[c]) * inverses[i], Shift: float64(beta[c])}
		}
		kernel.WideAffinePlanes(y, x, affine[:count])
		kernel.RaisePlanes(y, y, ofChannels(taus[:count], tau, row))
		if g.silu {
			dz, v := ds, y
			if ds = of(at.dx); g.residual {
				ds, v = of(at.ds), masked
				kernel.Add(v, y, of(at.r))
			}
			slope(ds, dz, v)
		}
		du = masked
		kernel.PassAbovePlanes(du, ds, y, taus[:count])
		kernel.WideDifferencePlanes(bounds[:count], ds, du)
	}
	kernel.SumPlanes(totals[:count], du)
	kernel.WideProductsPlanes(products[:count], du, x, zeros[:count])
	tables, terms := g.tables(), tensor.Workspace[float64](a)
	var combine [groupsPerPass]kernel.Combination
	for i := range count {
		inverse, scale := inverses[i], float64(gamma[(row+i)%len(gamma)])
		term := terms[(row+i)*tables:][:tables]
		term[0], term[1] = products[i]*inverse, totals[i]
		if g.threshold {
			term[2] = bounds[i]
		}
		combine[i] = kernel.Combination{A: inverse * scale, B: inverse * inverse * (scale * products[i] * inverse / float64(width))}
	}
	kernel.WideCombinePlanes(of(at.dx), du, x, combine[:count])
	if g.bias {
		kernel.SumPlanes(totals[:count], of(at.dx))
		for i := range count {
			terms[(row+i)*tables+tables-1] = totals[i]
		}
	}
}
