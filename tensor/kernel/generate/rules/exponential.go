package rules

// Indices of the coefficients that package kernel's exponential returns.
const (
	expHighest = iota
	expLowest
	expLog2e
	expRound
	expExponent
	expLn2High
	expLn2Low
	expTerm7
	_
	_
	_
	_
	expTerm2
	expOne
	expTwo
	expAlpha
	expTerm13
	_
	_
	_
	_
	expTerm3
	exponentialCoefficients
)

// Exponentials returns the passes that need e^x - 1, and the logarithm. Each performs the operations
// of the Go function with the same name.
func Exponentials() []Rule {
	of := func(name string, slices int, operate func(p Pass)) Rule {
		return Rule{Name: name, Slices: slices, Coefficients: exponentialCoefficients, Alternating: true, Operate: operate}
	}
	return []Rule{
		of("expm1", 2, func(p Pass) { p.Store(expm1(p, p.Load(1)), 0) }),
		of("sigmoid", 2, func(p Pass) { p.Store(sigmoid(p, p.Load(1)), 0) }),
		of("silu", 2, func(p Pass) { p.Store(p.Multiply(sigmoid(p, p.Load(1)), p.Place(1)), 0) }),
		of("siluGradient", 3, func(p Pass) {
			v := p.Maximum(p.Load(2), p.Held(expLowest))
			half := halfExp(p, p.Xor(p.Sign(), v))
			e := p.Add(half, half)
			s := p.Divide(p.Held(expOne), p.Add(e, p.Coefficient(expOne)))
			slope := p.Multiply(p.Multiply(e, s), v)
			slope = p.Multiply(p.Add(slope, p.Coefficient(expOne)), s)
			p.Store(p.Multiply(slope, p.Place(1)), 0)
		}),
		of("tanh", 2, func(p Pass) {
			v := p.Or(p.Sign(), p.Place(1))
			e := expm1(p, p.Add(v, v))
			e = p.Divide(e, p.Add(e, p.Coefficient(expTwo)))
			sign := p.Sign()
			e = p.AndNot(sign, e)
			p.Store(p.Or(e, p.And(sign, p.Place(1))), 0)
		}),
		{Name: "erf", Slices: 2, Coefficients: erfCoefficients, Alternating: true, Operate: func(p Pass) { p.Store(erf(p, p.Load(1)), 0) }},
		{Name: "gelu", Slices: 2, Coefficients: erfCoefficients, Alternating: true, Operate: func(p Pass) {
			x := p.Load(1)
			y := p.Add(erf(p, p.Multiply(x, p.Coefficient(erfRootHalf))), p.Coefficient(erfOne))
			p.Store(p.Multiply(p.Multiply(x, p.Coefficient(erfHalf)), y), 0)
		}},
		of("elu", 2, func(p Pass) {
			below := expm1(p, p.Minimum(p.Load(1), p.Zero()))
			below = p.Multiply(below, p.Coefficient(expAlpha))
			above := p.Maximum(p.Load(1), p.Zero())
			p.Store(p.Add(above, below), 0)
		}),
		of("softplus", 2, func(p Pass) {
			u := exp(p, p.Or(p.Sign(), p.Place(1)))
			s := p.Divide(u, p.Add(u, p.Coefficient(expTwo)))
			z := p.Multiply(s, s)
			q := p.Held(expTerm13)
			for term := expTerm13 + 1; term <= expTerm3; term++ {
				q = p.Add(p.Multiply(q, z), p.Coefficient(term))
			}
			half := p.Add(p.Multiply(s, p.Multiply(q, z)), s)
			above := p.Maximum(p.Load(1), p.Zero())
			p.Store(p.AddProduct(half, p.Held(expTwo), above), 0)
		}),
		of("softplusGradient", 3, func(p Pass) {
			fall := expm1(p, p.Xor(p.Sign(), p.Load(2)))
			p.Store(p.Multiply(p.Xor(p.Sign(), fall), p.Place(1)), 0)
		}),
		logarithm(),
		{Name: "sigmoidGradient", Slices: 3, Coefficients: 1, Operate: func(p Pass) {
			y := p.Load(2)
			p.Store(p.Multiply(p.Multiply(p.Subtract(p.Held(0), y), y), p.Place(1)), 0)
		}},
		{Name: "tanhGradient", Slices: 3, Coefficients: 1, Operate: func(p Pass) {
			y := p.Load(2)
			below := p.Subtract(p.Held(0), y)
			p.Store(p.Multiply(p.Multiply(p.Add(y, p.Coefficient(0)), below), p.Place(1)), 0)
		}},
	}
}

// Indices of the coefficients that package kernel's errorFunction returns.
const (
	erfHighest = iota
	erfRootHalf
	erfHalf
	erfNumerator5
	_
	_
	_
	_
	erfNumerator0
	erfDenominator5
	_
	_
	_
	_
	erfOne
	erfCoefficients
)

// erf performs the operations of package kernel's erf.
func erf(p Pass, v Value) Value {
	highest, one, sign := p.Held(erfHighest), p.Held(erfOne), p.Sign()
	x := p.Maximum(p.Minimum(v, highest), p.Xor(sign, highest))
	t := p.Multiply(x, x)
	above, below := p.Held(erfNumerator5), p.Held(erfDenominator5)
	for term := erfNumerator5 + 1; term <= erfNumerator0; term++ {
		above = p.Add(p.Multiply(above, t), p.Coefficient(term))
	}
	for term := erfDenominator5 + 1; term <= erfOne; term++ {
		below = p.Add(p.Multiply(below, t), p.Coefficient(term))
	}
	y := p.Divide(p.Multiply(above, x), below)
	return p.Maximum(p.Minimum(y, one), p.Xor(sign, one))
}

func sigmoid(p Pass, v Value) Value {
	half := halfExp(p, p.Xor(p.Sign(), v))
	return p.Divide(p.Held(expOne), p.AddProduct(half, p.Held(expTwo), p.Coefficient(expOne)))
}

func expm1(p Pass, v Value) Value {
	q, power := halfPowers(p, v)
	v = p.AddProduct(q, power, p.Subtract(power, p.Coefficient(expTerm2)))
	return p.Add(v, v)
}

func exp(p Pass, v Value) Value {
	q, power := halfPowers(p, v)
	v = p.Add(p.Multiply(q, power), power)
	return p.Add(v, v)
}

// halfExp returns half of exp where only its sum with 1 matters: it differs only far below 2^-24.
func halfExp(p Pass, v Value) Value {
	q, power := halfPowers(p, v)
	return p.AddProduct(q, power, power)
}

// halfPowers performs the operations of package kernel's halfPowers up to e^r - 1, which it returns
// as q. Its product with the power of two is exact, or below 2^-126: added to more than 2^-100 it
// changes nothing.
func halfPowers(p Pass, v Value) (q, power Value) {
	bounded := p.Maximum(p.Minimum(v, p.Held(expHighest)), p.Held(expLowest))
	whole := p.Add(p.Multiply(bounded, p.Coefficient(expLog2e)), p.Coefficient(expRound))
	power = p.ShiftLeft(p.AddInteger(whole, p.Coefficient(expExponent)), 23)
	whole = p.Subtract(whole, p.Coefficient(expRound))
	r := p.SubtractProduct(bounded, whole, p.Coefficient(expLn2High))
	r = p.Subtract(r, p.Multiply(whole, p.Coefficient(expLn2Low)))
	q = p.Held(expTerm7)
	for term := expTerm7 + 1; term <= expTerm2; term++ {
		q = p.Add(p.Multiply(q, r), p.Coefficient(term))
	}
	return p.Add(p.Multiply(q, p.Multiply(r, r)), r), power
}
