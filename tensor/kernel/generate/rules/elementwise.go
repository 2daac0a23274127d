package rules

// hardSwishFactor performs the operations of package kernel's function, for x/6.
func hardSwishFactor(p Pass, sixth Value) Value {
	return p.Maximum(p.Minimum(p.Add(sixth, p.Held(1)), p.Held(2)), p.Zero())
}

// Elementwise returns the passes over activations. The first slice is the result.
func Elementwise() (all []Rule) {
	for _, o := range []struct {
		name    string
		operate func(p Pass, a, b Value) Value
	}{{"add", Pass.Add}, {"subtract", Pass.Subtract}, {"multiply", Pass.Multiply}, {"divide", Pass.Divide}} {
		all = append(all, Rule{Name: o.name, Slices: 3, Operate: func(p Pass) { p.Store(o.operate(p, p.Load(1), p.Place(2)), 0) }})
	}
	return append(all,
		Rule{Name: "addPlane", Slices: 2, Coefficients: 1, Operate: func(p Pass) { p.Store(p.Add(p.Load(1), p.Held(0)), 0) }},
		Rule{Name: "multiplyPlane", Slices: 2, Coefficients: 1, Operate: func(p Pass) { p.Store(p.Multiply(p.Load(1), p.Held(0)), 0) }},
		// Instruction sets disagree on max(0, -0). Adding 0 makes both zeros positive.
		Rule{Name: "raise", Slices: 2, Coefficients: 1, Operate: func(p Pass) {
			p.Store(p.Add(p.Maximum(p.Load(1), p.Held(0)), p.Zero()), 0)
		}},
		Rule{Name: "passAbove", Slices: 3, Coefficients: 1, Operate: func(p Pass) {
			p.Store(p.WhereLess(p.Held(0), p.Place(2), p.Place(1)), 0)
		}},
		Rule{Name: "clip", Slices: 2, Coefficients: 2, Operate: func(p Pass) {
			p.Store(p.Add(p.Minimum(p.Maximum(p.Load(1), p.Held(0)), p.Held(1)), p.Zero()), 0)
		}},
		Rule{Name: "passWithin", Slices: 3, Coefficients: 2, Operate: func(p Pass) {
			below := p.WhereLess(p.Load(2), p.Held(1), p.Place(1))
			p.Store(p.WhereLess(p.Held(0), p.Place(2), below), 0)
		}},
		Rule{Name: "hardSwish", Slices: 2, Coefficients: 3, Operate: func(p Pass) {
			x := p.Load(1)
			p.Store(p.Multiply(hardSwishFactor(p, p.Multiply(x, p.Held(0))), x), 0)
		}},
		Rule{Name: "hardSwishGradient", Slices: 3, Coefficients: 3, Operate: func(p Pass) {
			sixth := p.Multiply(p.Load(2), p.Held(0))
			t := hardSwishFactor(p, sixth)
			inside := p.WhereLess(p.Zero(), t, p.WhereLess(t, p.Held(2), sixth))
			p.Store(p.Multiply(p.Add(inside, t), p.Place(1)), 0)
		}},
		Rule{Name: "keep", Slices: 3, Coefficients: 2, Operate: func(p Pass) {
			p.Store(p.WhereLess(p.Held(1), p.Place(2), p.Multiply(p.Load(1), p.Coefficient(0))), 0)
		}},
		Rule{Name: "sum", Slices: 1, Sums: true, Operate: func(p Pass) { p.Count(p.Place(0)) }},
	)
}
