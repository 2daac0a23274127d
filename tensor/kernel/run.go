package kernel

import "github.com/pkg/errors"

// Run computes one tile of one phase. It panics if the tile or a slice's length does not match the
// routine. Concurrent tiles share all operands except Scratch.
func Run[T Float](p *Routine, phase, tile int, o Operands[T]) {
	p.check(phase, tile, len(o.A), len(o.B), len(o.Bias), len(o.Out), len(o.Workspace), len(o.Scratch))
	runTile(p, phase, tile, p.Rows, o)
}

// runTile computes a tile of a phase. rows is the number of rows that the operands hold, if the
// routine has rows.
func runTile[T Float](p *Routine, phase, tile, rows int, o Operands[T]) {
	switch plan := p.plan.(type) {
	case *gemmPlan:
		gemmRun(plan, phase, tile, o)
	case *tapsPlan:
		lo, hi := splitRange(p.Rows*plan.shape.Groups, plan.tiles, tile)
		tapsUnits(plan, lo, hi, o)
	case *tapsFilterPlan:
		tapsFilterTile(plan, phase, tile, o)
	case *groupsPlan:
		if p.kind == kindGroupsFilter {
			groupsFilterTile(plan, phase, tile, o)
		} else {
			groupsTile(plan, phase, tile, o)
		}
	case *poolPlan:
		lo, hi := splitRange(p.Rows, plan.tiles, tile)
		poolPlanes(plan, p.kind, lo, hi, o)
	default:
		runConv2D(p, phase, tile, rows, o)
	}
}

// poolPlanes pools planes [lo, hi).
func poolPlanes[T Float](p *poolPlan, k kind, lo, hi int, o Operands[T]) {
	switch k {
	case kindMaxPoolForward:
		maxPoolForward(p, lo, hi, o.A, o.Out)
	case kindMaxPoolBackward:
		maxPoolBackward(p, lo, hi, o.A, o.B, o.Out)
	case kindAveragePoolForward:
		averagePoolForward(p, lo, hi, o.A, o.Out)
	case kindAveragePoolBackward:
		averagePoolBackward(p, lo, hi, o.A, o.Out)
	}
}

// RunRows computes some rows of the last phase or, for a filter's gradient, of the first. The
// operands hold only these rows: a multiple of Unit, or fewer at the end of a part. For a filter's
// gradient, Workspace is the partial sum of the part, and the rows are added to it if Add is set.
// The bits equal those of [Run].
func RunRows[T Float](p *Routine, rows int, o Operands[T]) {
	if rows < 1 || rows > p.Rows {
		panic(errors.Errorf("kernel: run: rows must be in [1, %d], got %d", p.Rows, rows))
	}
	a, b, out, workspace := p.sizeA/p.Rows*rows, p.sizeB, p.sizeOut, p.Workspace
	if p.rowsOfB() {
		b = b / p.Rows * rows
	}
	if p.Parts == nil {
		out = out / p.Rows * rows
	} else {
		workspace /= len(p.Parts) - 1
	}
	p.checkSizes(a, b, p.sizeBias, out, len(o.A), len(o.B), len(o.Bias), len(o.Out))
	p.checkMemory(workspace, p.Scratch, len(o.Workspace), len(o.Scratch))
	switch plan := p.plan.(type) {
	case *poolPlan:
		poolPlanes(plan, p.kind, 0, rows, o)
		return
	case *tapsPlan:
		tapsUnits(plan, 0, rows*plan.shape.Groups, o)
		return
	case *tapsFilterPlan:
		tapsFilterSums(plan, 0, rows, 0, plan.shape.Groups, o.Workspace, o)
		return
	case *groupsPlan:
		groupsRows(plan, p.kind, rows, o)
		return
	}
	units := ceilDiv(rows, p.Unit)
	if p.Parts != nil {
		sumRanges(p, units, rows, o)
		return
	}
	last := len(p.Phases) - 1
	tiles := p.Phases[last] / ceilDiv(p.Rows, p.Unit) // of a unit
	for tile := range units * tiles {
		runTile(p, last, tile, rows, o)
	}
}

// RunPlanes computes planes [lo, hi) of the output of one image, if the routine has Planes. Out
// holds these planes, and A the image or, with OneToOne, the planes of A with the same numbers. B
// and Bias hold the values for all planes. The bits equal those of [Run].
func RunPlanes[T Float](p *Routine, lo, hi int, o Operands[T]) {
	count := p.Planes.Count
	if lo < 0 || lo >= hi || hi > count {
		panic(errors.Errorf("kernel: run: planes must be in [0, %d), got [%d, %d)", count, lo, hi))
	}
	a, out := p.sizeA/p.Rows, p.sizeOut/p.Rows/count*(hi-lo)
	if p.Planes.OneToOne {
		a = a / count * (hi - lo)
	}
	p.checkSizes(a, p.sizeB, p.sizeBias, out, len(o.A), len(o.B), len(o.Bias), len(o.Out))
	p.checkMemory(p.Workspace, p.Scratch, len(o.Workspace), len(o.Scratch))
	filter := p.sizeB / count
	o.B = o.B[lo*filter : hi*filter]
	if p.sizeBias > 0 {
		o.Bias = o.Bias[lo:hi]
	}
	switch plan := p.plan.(type) {
	case *tapsPlan:
		tapsUnits(plan, 0, hi-lo, o)
	case *convPlan:
		some := *plan
		some.outputs, some.ranges = hi-lo, 1
		for tile := range p.Phases[0] / p.Rows / plan.ranges {
			convTile(&some, tile, 1, o.A, o.B, o.Bias, o.Out, o.Scratch)
		}
	}
}

// sumRanges sums all ranges of a filter's gradient over some units of rows.
func sumRanges[T Float](p *Routine, units, rows int, o Operands[T]) {
	switch plan := p.plan.(type) {
	case *convPlan:
		for i := range plan.filter.ranges {
			filterSums(plan, 0, units, rows, i, o.Workspace, o)
		}
	case *linesPlan:
		for i := range plan.ranges {
			linesSums(plan, 0, units, rows, i, o.Workspace, o)
		}
	case *winogradGradient:
		for i := range plan.ranges {
			winogradSums(plan, 0, units, rows, i, o.Workspace, o)
		}
	}
}

// rowsOfB reports whether B consists of rows, as A does.
func (p *Routine) rowsOfB() bool { return p.Parts != nil || p.kind >= kindMaxPoolForward }
