package rules

// Indices of the coefficients in package kernel's logarithm.
const (
	logNormal = iota
	logRaiseLess1
	logRaised
	logOffset
	logMantissa
	logRootHalf
	logWhole
	logBias
	logOne
	logTwo
	logHalf
	logTerm9
	_
	_
	logTerm3
	logLn2High
	logLn2Low
	logSmallest
	logMinusInf
	logNaN
	logLargest
	logInf
	logCoefficients
)

// logarithm returns the pass that performs the operations of package kernel's log. Where that
// branches, it selects.
func logarithm() Rule {
	return Rule{Name: "log", Slices: 2, Coefficients: logCoefficients, Operate: func(p Pass) {
		x := p.Load(1)
		// What is added to the result: 0, or a number that makes it what it must be.
		odd := p.Or(p.WhereLess(x, p.Held(logSmallest), p.Held(logMinusInf)), p.WhereLess(x, p.Zero(), p.Held(logNaN)))
		odd = p.Or(odd, p.WhereLess(p.Held(logLargest), x, p.Held(logInf)))
		odd = p.Or(odd, p.WhereNotEqual(x, x, p.Held(logNaN)))

		one := p.Held(logOne)
		raised := p.WhereLess(x, p.Held(logNormal), p.Held(logRaised))
		x = p.Multiply(x, p.Add(p.WhereLess(x, p.Held(logNormal), p.Held(logRaiseLess1)), one))
		bits := p.AddInteger(x, p.Coefficient(logOffset))
		n := p.Subtract(p.Subtract(p.Or(p.ShiftRight(bits, 23), p.Held(logWhole)), p.Coefficient(logBias)), raised)
		f := p.Subtract(p.AddInteger(p.And(bits, p.Held(logMantissa)), p.Coefficient(logRootHalf)), one)
		s := p.Divide(f, p.Add(f, p.Coefficient(logTwo)))
		z := p.Multiply(s, s)
		q := p.Held(logTerm9)
		for term := logTerm9 + 1; term <= logTerm3; term++ {
			q = p.Add(p.Multiply(q, z), p.Coefficient(term))
		}
		half := p.Multiply(p.Multiply(f, f), p.Coefficient(logHalf))
		rest := p.Add(p.Multiply(s, p.Add(p.Multiply(q, z), half)), p.Multiply(n, p.Coefficient(logLn2Low)))
		y := p.Add(p.Add(p.Subtract(rest, half), f), p.Multiply(n, p.Coefficient(logLn2High)))
		p.Store(p.Add(y, odd), 0)
	}}
}
