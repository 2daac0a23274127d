package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Places of the constants that package kernel's exponential gives as coefficients.
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
	exponentialCoefficients
)

// exponentials describes the passes that need e^x - 1. Each performs the operations of the Go function of its name.
func exponentials(t target) {
	of := func(name string, slices int, body func(p *pass)) {
		passOf(t, name, slices, exponentialCoefficients, false, body)
	}
	of("expm1", 2, func(p *pass) { p.store(p.expm1(p.load(1)), 0) })
	of("sigmoid", 2, func(p *pass) { p.store(p.sigmoid(p.load(1)), 0) })
	of("silu", 2, func(p *pass) { p.store(p.multiply(p.sigmoid(p.load(1)), p.place(1)), 0) })
	of("siluGradient", 3, func(p *pass) {
		v := p.load(2)
		VMAXPS(v, p.inRegister(p.coefficients[expLowest]), v) // v where it is NaN
		e := p.exp(p.negative(v))
		s := p.divide(p.inRegister(p.coefficients[expOne]), p.add(e, p.coefficients[expOne]))
		slope := p.multiply(p.multiply(e, s), v)
		slope = p.multiply(p.add(slope, p.coefficients[expOne]), s)
		p.store(p.multiply(slope, p.place(1)), 0)
	})
	of("tanh", 2, func(p *pass) {
		sign := p.sign()
		v := p.new()
		VORPS(p.place(1), sign, v)
		e := p.expm1(p.add(v, v))
		e = p.divide(e, p.add(e, p.coefficients[expTwo]))
		sign = p.sign()
		VANDNPS(e, sign, e)
		VANDPS(p.place(1), sign, sign)
		VORPS(sign, e, e)
		p.store(e, 0)
	})
	of("elu", 2, func(p *pass) {
		x, zero, below, above := p.load(1), p.zero(), p.new(), p.new()
		// The lesser and the greater of a NaN and 0 is the operand written first: NaN stays.
		VMINPS(x, zero, below)
		below = p.multiply(p.expm1(below), p.coefficients[expAlpha])
		VMAXPS(p.load(1), p.zero(), above)
		p.store(p.add(above, below), 0)
	})
	passOf(t, "sigmoidGradient", 3, 1, false, func(p *pass) {
		y := p.load(2)
		p.store(p.multiply(p.multiply(p.subtract(p.inRegister(p.coefficients[0]), y), y), p.place(1)), 0)
	})
	passOf(t, "tanhGradient", 3, 1, false, func(p *pass) {
		y := p.load(2)
		below := p.subtract(p.inRegister(p.coefficients[0]), y)
		p.store(p.multiply(p.multiply(p.add(y, p.coefficients[0]), below), p.place(1)), 0)
	})
}

// sign is the bit of the sign alone.
func (p *pass) sign() VecVirtual {
	v := p.new()
	if p.lanes == vector {
		VPCMPEQD(v, v, v)
	} else {
		VPTERNLOGD(Imm(0xff), v, v, v)
	}
	VPSLLD(Imm(31), v, v)
	return v
}

func (p *pass) negative(v VecVirtual) VecVirtual {
	minus := p.new()
	VXORPS(p.sign(), v, minus)
	return minus
}

func (p *pass) sigmoid(v VecVirtual) VecVirtual {
	return p.divide(p.inRegister(p.coefficients[expOne]), p.add(p.exp(p.negative(v)), p.coefficients[expOne]))
}

func (p *pass) expm1(v VecVirtual) VecVirtual {
	product, power := p.halfPowers(v)
	v = p.add(product, p.subtract(power, p.coefficients[expTerm2]))
	return p.add(v, v)
}

func (p *pass) exp(v VecVirtual) VecVirtual {
	product, power := p.halfPowers(v)
	v = p.add(product, power)
	return p.add(v, v)
}

// halfPowers are package kernel's.
func (p *pass) halfPowers(v VecVirtual) (product, power VecVirtual) {
	bounded := p.new()
	power = p.new()
	VMINPS(v, p.inRegister(p.coefficients[expHighest]), bounded) // v where it is NaN
	VMAXPS(bounded, p.inRegister(p.coefficients[expLowest]), bounded)
	whole := p.add(p.multiply(bounded, p.coefficients[expLog2e]), p.coefficients[expRound])
	VPADDD(p.coefficients[expExponent], whole, power)
	VPSLLD(Imm(23), power, power)
	whole = p.subtract(whole, p.coefficients[expRound])
	r := p.subtract(bounded, p.multiply(whole, p.coefficients[expLn2High]))
	r = p.subtract(r, p.multiply(whole, p.coefficients[expLn2Low]))
	q := p.inRegister(p.coefficients[expTerm7])
	for term := expTerm7 + 1; term <= expTerm2; term++ {
		q = p.add(p.multiply(q, r), p.coefficients[term])
	}
	q = p.add(p.multiply(q, p.multiply(r, r)), r)
	return p.multiply(q, power), power
}
