package kernel

// groupsPlan runs the routine of one group of one image for all of them. Only the last phase of the
// inner routine depends on the image; the phases before it prepare the group's filter.
type groupsPlan struct {
	shape  GroupedConv2D
	inner  Routine
	images []int // of a filter's gradient: the first image of each partial sum, and the end
}

// byGroups prepares a direction by the dense routine of a group.
func (g GroupedConv2D) byGroups(direction func(Conv2D) (Routine, error)) (Routine, error) {
	inner, err := direction(g.group())
	if err != nil {
		return Routine{}, err
	}
	r := Routine{
		Workspace: g.Groups * inner.Workspace, Scratch: inner.Scratch, Rows: g.B, Unit: 1,
		kind: kindGroups, plan: &groupsPlan{shape: g, inner: inner},
		sizeA: g.B * g.Groups * inner.sizeA, sizeB: g.Groups * inner.sizeB, sizeBias: g.Groups * inner.sizeBias, sizeOut: g.B * g.Groups * inner.sizeOut,
	}
	last := len(inner.Phases) - 1
	for _, tiles := range inner.Phases[:last] {
		r.Phases = append(r.Phases, g.Groups*tiles)
	}
	r.Phases = append(r.Phases, g.B*g.Groups)
	return r, nil
}

// filterByGroups prepares the gradient of the filter: for each group of each image the dense
// routine of one image, whose result is added to the partial sum of a range of images.
func (g GroupedConv2D) filterByGroups() (Routine, error) {
	inner, err := g.group().BackwardFilter()
	if err != nil {
		return Routine{}, err
	}
	p := &groupsPlan{shape: g, inner: inner, images: g.partialSums()}
	parts := len(p.images) - 1
	return Routine{
		Phases:    []int{parts * g.Groups, combineTiles(g.sizeW())},
		Workspace: parts * g.sizeW(),
		Scratch:   inner.Scratch + inner.Workspace + inner.sizeOut,
		Rows:      g.B, Unit: 1, Parts: p.images,
		kind: kindGroupsFilter, plan: p,
		sizeA: g.sizeY(), sizeB: g.sizeX(), sizeOut: g.sizeW(),
	}, nil
}

// groupsTile runs a tile of a phase before the last, or all tiles of the last phase for one group
// of one image.
func groupsTile[T Float](p *groupsPlan, phase, tile int, o Operands[T]) {
	inner := &p.inner
	if last := len(inner.Phases) - 1; phase == last {
		groupsUnits(p, tile, tile+1, o)
		return
	}
	tiles := inner.Phases[phase]
	group := tile / tiles
	some := Operands[T]{B: fractionOf(o.B, p.shape.Groups, group), Workspace: o.Workspace[group*inner.Workspace:][:inner.Workspace], Scratch: o.Scratch}
	runConv2D(inner, phase, tile%tiles, 1, some)
}

// fractionOf returns one of count equal parts of a slice.
func fractionOf[T any](x []T, count, i int) []T {
	n := len(x) / count
	return x[i*n : (i+1)*n]
}

// groupsUnits runs the last phase for groups [lo, hi), numbered across images: group g of image n
// has number n*Groups + g.
func groupsUnits[T Float](p *groupsPlan, lo, hi int, o Operands[T]) {
	groups, inner := p.shape.Groups, &p.inner
	last := len(inner.Phases) - 1
	for unit := lo; unit < hi; unit++ {
		group := unit % groups
		some := Operands[T]{
			A: o.A[unit*inner.sizeA:][:inner.sizeA], B: fractionOf(o.B, groups, group), Bias: fractionOf(o.Bias, groups, group),
			Out: o.Out[unit*inner.sizeOut:][:inner.sizeOut], Workspace: o.Workspace[group*inner.Workspace:][:inner.Workspace], Scratch: o.Scratch,
		}
		for tile := range inner.Phases[last] {
			runConv2D(inner, last, tile, 1, some)
		}
	}
}

// groupsFilterTile sums the gradient of one group's filter over one range of images, or adds the
// ranges.
func groupsFilterTile[T Float](p *groupsPlan, phase, tile int, o Operands[T]) {
	parts, size := len(p.images)-1, p.shape.sizeW()
	if phase == 1 {
		combineParts(parts, size, tile, o)
		return
	}
	n := tile % parts
	groupsFilterSums(p, p.images[n], p.images[n+1], tile/parts, o.Workspace[n*size:][:size], o)
}

// groupsFilterSums sums the gradient of a group's filter over images [lo, hi).
func groupsFilterSums[T Float](p *groupsPlan, lo, hi, group int, partial []T, o Operands[T]) {
	inner, groups := &p.inner, p.shape.Groups
	workspace := o.Scratch[inner.Scratch:][:inner.Workspace]
	gradient := o.Scratch[inner.Scratch+inner.Workspace:][:inner.sizeOut]
	sum := partial[group*inner.sizeOut:][:inner.sizeOut]
	for image := lo; image < hi; image++ {
		unit := image*groups + group
		some := Operands[T]{
			A: o.A[unit*inner.sizeA:][:inner.sizeA], B: o.B[unit*inner.sizeB:][:inner.sizeB], Out: gradient,
			Workspace: workspace, Scratch: o.Scratch[:inner.Scratch],
		}
		first := image == lo && !o.Add
		if first {
			some.Out = sum
		}
		for phase, tiles := range inner.Phases {
			for tile := range tiles {
				runConv2D(inner, phase, tile, 1, some)
			}
		}
		if !first {
			Add(sum, sum, gradient)
		}
	}
}

// groupsRows computes some images, or sums them.
func groupsRows[T Float](p *groupsPlan, k kind, images int, o Operands[T]) {
	if k != kindGroupsFilter {
		groupsUnits(p, 0, images*p.shape.Groups, o)
		return
	}
	for group := range p.shape.Groups {
		groupsFilterSums(p, 0, images, group, o.Workspace, o)
	}
}
