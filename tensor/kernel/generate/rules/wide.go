package rules

// Wide returns the passes over float32 that compute in float64.
func Wide() []Rule {
	return []Rule{
		{Name: "wideSum", Slices: 1, Sums: true, Wide: true, Operate: func(p Pass) { p.Count(p.Load(0)) }},
		{Name: "wideDifference", Slices: 2, Sums: true, Wide: true, Operate: func(p Pass) { p.Count(p.Subtract(p.Load(0), p.Load(1))) }},
		{Name: "wideSquares", Slices: 1, Coefficients: 1, Sums: true, Wide: true, Operate: func(p Pass) {
			d := p.Subtract(p.Load(0), p.Coefficient(0))
			p.Count(p.Multiply(d, d))
		}},
		{Name: "wideProducts", Slices: 2, Coefficients: 1, Sums: true, Wide: true, Operate: func(p Pass) {
			d := p.Subtract(p.Load(1), p.Coefficient(0))
			p.Count(p.Multiply(d, p.Load(0)))
		}},
		{Name: "wideAffine", Slices: 2, Coefficients: 3, Wide: true, Operate: func(p Pass) {
			d := p.Subtract(p.Load(1), p.Coefficient(0))
			p.Store(p.Add(p.Multiply(d, p.Coefficient(1)), p.Coefficient(2)), 0)
		}},
		{Name: "wideAffineRow", Slices: 4, Coefficients: 2, Wide: true, Operate: func(p Pass) {
			d := p.Subtract(p.Load(1), p.Coefficient(0))
			scale := p.Multiply(p.Load(2), p.Coefficient(1))
			p.Store(p.Add(p.Multiply(d, scale), p.Load(3)), 0)
		}},
		{Name: "wideCombine", Slices: 3, Coefficients: 4, Wide: true, Operate: func(p Pass) {
			d := p.Multiply(p.Subtract(p.Load(2), p.Coefficient(0)), p.Coefficient(1))
			p.Store(p.Subtract(p.Multiply(p.Load(1), p.Coefficient(2)), p.Add(d, p.Coefficient(3))), 0)
		}},
	}
}
