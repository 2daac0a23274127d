package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// updates describes the passes of samplers and optimizers. The slices and coefficients are in the order in which the functions of package
// kernel give them.
func updates(t target) {
	passOf(t, "dot", 2, 0, true, func(p *pass) { p.count(p.load(0), p.load(1)) })
	gradients(t)
	samplers(t)
	optimizers(t)
}

// gradients are passes over g, w, dw.
func gradients(t target) {
	passOf(t, "decayedGradient", 3, 1, true, func(p *pass) {
		theta := p.load(1)
		p.gradient(theta, p.multiply(theta, p.coefficients[0]))
	})
	passOf(t, "laplaceGradient", 3, 2, true, func(p *pass) {
		theta, sign := p.load(1), p.new()
		VANDPS(p.coefficients[1], theta, sign)
		VORPS(p.coefficients[0], sign, sign)
		p.gradient(theta, p.where(notEqual, theta, p.zero(), sign))
	})
	passOf(t, "studentGradient", 3, 2, true, func(p *pass) {
		theta := p.load(1)
		spread := p.add(p.multiply(theta, theta), p.coefficients[1])
		p.gradient(theta, p.divide(p.multiply(theta, p.coefficients[0]), spread))
	})
}

func (p *pass) gradient(theta, slope VecVirtual) {
	g := p.add(slope, p.place(2))
	p.count(theta, g)
	p.store(g, 0)
}

// samplers are passes over w, velocities or second moments if any, g, and the noise.
func samplers(t target) {
	passOf(t, "sgld", 3, 2, false, func(p *pass) {
		rate, scale := p.coefficients[0], p.coefficients[1]
		moved := p.subtract(p.load(0), p.multiply(p.load(1), rate))
		p.store(p.add(moved, p.multiply(p.load(2), scale)), 0)
	})
	passOf(t, "psgld", 4, 6, false, func(p *pass) {
		keep, take, lambda, one, rate, scale := p.coefficients[0], p.coefficients[1], p.coefficients[2], p.coefficients[3], p.coefficients[4], p.coefficients[5]
		g := p.load(2)
		v := p.averageSquare(1, keep, take, g)
		p.store(v, 1)
		precondition := p.inverseRoot(v, lambda, one)
		moved := p.subtract(p.load(0), p.multiply(p.multiply(precondition, g), rate))
		noise := p.multiply(p.multiply(p.root(precondition), scale), p.place(3))
		p.store(p.add(moved, noise), 0)
	})
	passOf(t, "sghmc", 4, 3, false, func(p *pass) {
		keep, rate, scale := p.coefficients[0], p.coefficients[1], p.coefficients[2]
		v := p.subtract(p.multiply(p.load(1), keep), p.multiply(p.load(2), rate))
		v = p.add(v, p.multiply(p.load(3), scale))
		p.store(v, 1)
		p.store(p.add(v, p.place(0)), 0)
	})
	passOf(t, "baoab", 4, 4, false, func(p *pass) {
		keep, rate, scale, half := p.coefficients[0], p.coefficients[1], p.coefficients[2], p.coefficients[3]
		p.relax(1, 3, p.subtract(p.load(1), p.multiply(p.load(2), rate)), keep, scale, half)
	})
	passOf(t, "drift", 3, 3, false, func(p *pass) {
		p.relax(1, 2, p.load(1), p.coefficients[0], p.coefficients[1], p.coefficients[2])
	})
}

// relax stores keep*old + scale*noise as the new velocity, and moves by half of the old and half of the new one.
func (p *pass) relax(velocity, noise int, old VecVirtual, keep, scale, half Op) {
	v := p.add(p.multiply(old, keep), p.multiply(p.load(noise), scale))
	p.store(v, velocity)
	p.store(p.add(p.multiply(p.add(old, v), half), p.place(0)), 0)
}

// averageSquare is keep*mean + (take*g)*g.
func (p *pass) averageSquare(mean int, keep, take Op, g VecVirtual) VecVirtual {
	return p.add(p.multiply(p.load(mean), keep), p.multiply(p.multiply(g, take), g))
}

// inverseRoot is one / (root(v) + floor).
func (p *pass) inverseRoot(v VecVirtual, floor, one Op) VecVirtual {
	return p.divide(p.inRegister(one), p.add(p.root(v), floor))
}

// optimizers are passes over w, dw and the rule's states. Coefficient 0 is the decay of weights.
func optimizers(t target) {
	passOf(t, "sgd", 2, 2, true, func(p *pass) {
		theta, g := p.decayed()
		p.store(p.subtract(theta, p.multiply(g, p.coefficients[1])), 0)
	})
	passOf(t, "momentum", 3, 3, true, func(p *pass) {
		theta, g := p.decayed()
		v := p.add(p.multiply(g, p.coefficients[2]), p.multiply(p.load(2), p.coefficients[1]))
		p.store(v, 2)
		p.store(p.subtract(theta, v), 0)
	})
	passOf(t, "nesterov", 3, 3, true, func(p *pass) {
		theta, g := p.decayed()
		move := p.multiply(g, p.coefficients[2])
		v := p.add(move, p.multiply(p.load(2), p.coefficients[1]))
		p.store(v, 2)
		p.store(p.subtract(theta, p.add(p.multiply(v, p.coefficients[1]), move)), 0)
	})
	passOf(t, "adagrad", 3, 4, true, func(p *pass) {
		theta, g := p.decayed()
		s := p.add(p.multiply(g, g), p.place(2))
		p.store(s, 2)
		p.descend(theta, p.multiply(p.inverseRoot(s, p.coefficients[2], p.coefficients[3]), g), p.coefficients[1])
	})
	passOf(t, "rmsprop", 3, 6, true, func(p *pass) {
		theta, g := p.decayed()
		s := p.averageSquare(2, p.coefficients[4], p.coefficients[5], g)
		p.store(s, 2)
		p.descend(theta, p.multiply(p.inverseRoot(s, p.coefficients[2], p.coefficients[3]), g), p.coefficients[1])
	})
	passOf(t, "adadelta", 4, 4, true, func(p *pass) {
		epsilon, keep, take := p.coefficients[1], p.coefficients[2], p.coefficients[3]
		theta, g := p.decayed()
		s := p.averageSquare(2, keep, take, g)
		p.store(s, 2)
		d := p.divide(p.root(p.add(p.load(3), epsilon)), p.root(p.add(s, epsilon)))
		d = p.multiply(d, g)
		p.store(p.averageSquare(3, keep, take, d), 3)
		p.store(p.subtract(theta, d), 0)
	})
	passOf(t, "adam", 4, 11, true, func(p *pass) {
		c := p.coefficients
		rate, epsilon, one, inStep := c[1], c[2], c[3], c[10]
		theta, g := p.decayed()
		m := p.add(p.multiply(p.load(2), c[4]), p.multiply(g, c[5]))
		p.store(m, 2)
		v := p.averageSquare(3, c[6], c[7], g)
		p.store(v, 3)
		step := p.multiply(p.inverseRoot(p.multiply(v, c[9]), epsilon, one), p.multiply(m, c[8]))
		p.descend(theta, p.add(step, p.multiply(theta, inStep)), rate)
	})
}

// decayed is the parameters and their gradients, whose product is counted.
func (p *pass) decayed() (theta, g VecVirtual) {
	theta = p.load(0)
	g = p.add(p.multiply(theta, p.coefficients[0]), p.place(1))
	p.count(theta, g)
	return theta, g
}

func (p *pass) descend(theta, g VecVirtual, rate Op) {
	p.store(p.subtract(theta, p.multiply(g, rate)), 0)
}
