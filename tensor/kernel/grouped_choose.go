package kernel

// maxTapPlanes is the maximum number of input or output planes of a group for which convolutions
// run tap by tap. In larger groups operands are shared, as in products.
const maxTapPlanes = 6

// byTaps reports whether groups are so small that no operand is worth sharing.
func (g GroupedConv2D) byTaps() bool {
	return max(g.C, g.K)/g.Groups <= maxTapPlanes
}

// Forward prepares y = f(conv(x, w) + bias), with the operands of [Conv2D.Forward].
func (g GroupedConv2D) Forward() (Routine, error) {
	if err := g.Validate(); err != nil {
		return Routine{}, err
	}
	if !g.byTaps() {
		return g.byGroups((Conv2D).Forward)
	}
	p := g.forwardTaps()
	r := p.routine(g.sizeX(), g.sizeW(), g.sizeY())
	if g.Bias {
		r.sizeBias = g.K
	}
	if g.Groups == g.C && g.C == g.K {
		r.Planes = Planes{Count: g.K, OneToOne: true}
	}
	return r, nil
}

// BackwardInput prepares the gradient with respect to x, with the operands of
// [Conv2D.BackwardInput].
func (g GroupedConv2D) BackwardInput() (Routine, error) {
	if err := g.validateBackward(); err != nil {
		return Routine{}, err
	}
	if !g.byTaps() {
		return g.byGroups((Conv2D).BackwardInput)
	}
	return g.backwardTaps().routine(g.sizeY(), g.sizeW(), g.sizeX()), nil
}

// BackwardFilter prepares the gradient with respect to w, with the operands of
// [Conv2D.BackwardFilter].
func (g GroupedConv2D) BackwardFilter() (Routine, error) {
	if err := g.validateBackward(); err != nil {
		return Routine{}, err
	}
	if !g.byTaps() {
		return g.filterByGroups()
	}
	return g.filterTaps(), nil
}
