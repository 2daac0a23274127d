package rules

import "slices"

// Updates returns the passes of samplers and optimizers. Slices and coefficients are in the order
// in which the functions of package kernel pass them.
func Updates() []Rule {
	dot := Rule{Name: "dot", Slices: 2, Sums: true, Operate: func(p Pass) { p.Count(p.Multiply(p.Load(0), p.Load(1))) }}
	return slices.Concat([]Rule{dot}, gradients(), samplers(), optimizers())
}

// gradients returns the passes over g, w, dw.
func gradients() []Rule {
	return []Rule{
		{Name: "decayedGradient", Slices: 3, Coefficients: 1, Sums: true, Operate: func(p Pass) {
			theta := p.Load(1)
			gradient(p, theta, p.Multiply(theta, p.Coefficient(0)))
		}},
		{Name: "laplaceGradient", Slices: 3, Coefficients: 2, Sums: true, Operate: func(p Pass) {
			theta := p.Load(1)
			slope := p.Or(p.And(theta, p.Coefficient(1)), p.Coefficient(0))
			gradient(p, theta, p.WhereNotEqual(theta, p.Zero(), slope))
		}},
		{Name: "studentGradient", Slices: 3, Coefficients: 2, Sums: true, Operate: func(p Pass) {
			theta := p.Load(1)
			spread := p.Add(p.Multiply(theta, theta), p.Coefficient(1))
			gradient(p, theta, p.Divide(p.Multiply(theta, p.Coefficient(0)), spread))
		}},
	}
}

func gradient(p Pass, theta, slope Value) {
	g := p.Add(slope, p.Place(2))
	p.Count(p.Multiply(theta, g))
	p.Store(g, 0)
}

// samplers returns the passes over w, velocities or second moments if there are any, g, and the
// noise.
func samplers() []Rule {
	return []Rule{
		{Name: "sgld", Slices: 3, Coefficients: 2, Operate: func(p Pass) {
			rate, scale := p.Coefficient(0), p.Coefficient(1)
			moved := p.Subtract(p.Load(0), p.Multiply(p.Load(1), rate))
			p.Store(p.Add(moved, p.Multiply(p.Load(2), scale)), 0)
		}},
		{Name: "decayedSGLD", Slices: 3, Coefficients: 3, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			moved := p.Subtract(theta, p.Multiply(g, p.Coefficient(1)))
			p.Store(p.Add(moved, p.Multiply(p.Load(2), p.Coefficient(2))), 0)
		}},
		{Name: "psgld", Slices: 4, Coefficients: 6, Operate: func(p Pass) {
			keep, take, lambda, rate, scale := p.Coefficient(0), p.Coefficient(1), p.Coefficient(2), p.Coefficient(4), p.Coefficient(5)
			g := p.Load(2)
			v := averageSquare(p, 1, keep, take, g)
			p.Store(v, 1)
			precondition := inverseRoot(p, v, lambda)
			moved := p.Subtract(p.Load(0), p.Multiply(p.Multiply(precondition, g), rate))
			noise := p.Multiply(p.Multiply(p.Root(precondition), scale), p.Place(3))
			p.Store(p.Add(moved, noise), 0)
		}},
		{Name: "sghmc", Slices: 4, Coefficients: 3, Operate: func(p Pass) {
			keep, rate, scale := p.Coefficient(0), p.Coefficient(1), p.Coefficient(2)
			v := p.Subtract(p.Multiply(p.Load(1), keep), p.Multiply(p.Load(2), rate))
			v = p.Add(v, p.Multiply(p.Load(3), scale))
			p.Store(v, 1)
			p.Store(p.Add(v, p.Place(0)), 0)
		}},
		{Name: "baoab", Slices: 4, Coefficients: 4, Operate: func(p Pass) {
			keep, rate, scale, share := p.Coefficient(0), p.Coefficient(1), p.Coefficient(2), p.Coefficient(3)
			relax(p, 1, 3, p.Subtract(p.Load(1), p.Multiply(p.Load(2), rate)), keep, scale, share)
		}},
		{Name: "drift", Slices: 3, Coefficients: 3, Operate: func(p Pass) {
			relax(p, 1, 2, p.Load(1), p.Coefficient(0), p.Coefficient(1), p.Coefficient(2))
		}},
	}
}

// relax stores keep*old + scale*noise as the new velocity, and moves by a fraction of the sum of
// the old and new ones.
func relax(p Pass, velocity, noise int, old, keep, scale, share Value) {
	v := p.Add(p.Multiply(old, keep), p.Multiply(p.Load(noise), scale))
	p.Store(v, velocity)
	p.Store(p.Add(p.Multiply(p.Add(old, v), share), p.Place(0)), 0)
}

// averageSquare returns keep*mean + (take*g)*g.
func averageSquare(p Pass, mean int, keep, take, g Value) Value {
	return p.Add(p.Multiply(p.Load(mean), keep), p.Multiply(p.Multiply(g, take), g))
}

// inverseRoot returns 1 / (root(v) + floor); coefficient 3 is the 1.
func inverseRoot(p Pass, v, floor Value) Value {
	return p.Divide(p.Held(3), p.Add(p.Root(v), floor))
}

// optimizers returns the passes over w, dw and the rule's states. Coefficient 0 is the weight
// decay.
func optimizers() []Rule {
	return []Rule{
		{Name: "sgd", Slices: 2, Coefficients: 2, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			p.Store(p.Subtract(theta, p.Multiply(g, p.Coefficient(1))), 0)
		}},
		{Name: "momentum", Slices: 3, Coefficients: 3, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			v := p.Add(p.Multiply(g, p.Coefficient(2)), p.Multiply(p.Load(2), p.Coefficient(1)))
			p.Store(v, 2)
			p.Store(p.Subtract(theta, v), 0)
		}},
		{Name: "nesterov", Slices: 3, Coefficients: 3, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			move := p.Multiply(g, p.Coefficient(2))
			v := p.Add(move, p.Multiply(p.Load(2), p.Coefficient(1)))
			p.Store(v, 2)
			p.Store(p.Subtract(theta, p.Add(p.Multiply(v, p.Coefficient(1)), move)), 0)
		}},
		{Name: "adagrad", Slices: 3, Coefficients: 4, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			s := p.Add(p.Multiply(g, g), p.Place(2))
			p.Store(s, 2)
			descend(p, theta, p.Multiply(inverseRoot(p, s, p.Coefficient(2)), g), p.Coefficient(1))
		}},
		{Name: "rmsprop", Slices: 3, Coefficients: 6, Sums: true, Operate: func(p Pass) {
			theta, g := decayed(p)
			s := averageSquare(p, 2, p.Coefficient(4), p.Coefficient(5), g)
			p.Store(s, 2)
			descend(p, theta, p.Multiply(inverseRoot(p, s, p.Coefficient(2)), g), p.Coefficient(1))
		}},
		{Name: "adadelta", Slices: 4, Coefficients: 4, Sums: true, Operate: func(p Pass) {
			epsilon, keep, take := p.Coefficient(1), p.Coefficient(2), p.Coefficient(3)
			theta, g := decayed(p)
			s := averageSquare(p, 2, keep, take, g)
			p.Store(s, 2)
			d := p.Divide(p.Root(p.Add(p.Load(3), epsilon)), p.Root(p.Add(s, epsilon)))
			d = p.Multiply(d, g)
			p.Store(averageSquare(p, 3, keep, take, d), 3)
			p.Store(p.Subtract(theta, d), 0)
		}},
		{Name: "adam", Slices: 4, Coefficients: 11, Sums: true, Operate: func(p Pass) {
			c := p.Coefficient
			rate, epsilon, inStep := c(1), c(2), c(10)
			theta, g := decayed(p)
			m := p.Add(p.Multiply(p.Load(2), c(4)), p.Multiply(g, c(5)))
			p.Store(m, 2)
			v := averageSquare(p, 3, c(6), c(7), g)
			p.Store(v, 3)
			step := p.Multiply(inverseRoot(p, p.Multiply(v, c(9)), epsilon), p.Multiply(m, c(8)))
			descend(p, theta, p.Add(step, p.Multiply(theta, inStep)), rate)
		}},
	}
}

// decayed returns the parameters and their gradients, and adds their product to the statistic.
func decayed(p Pass) (theta, g Value) {
	theta = p.Load(0)
	g = p.Add(p.Multiply(theta, p.Coefficient(0)), p.Place(1))
	p.Count(p.Multiply(theta, g))
	return theta, g
}

func descend(p Pass, theta, g, rate Value) {
	p.Store(p.Subtract(theta, p.Multiply(g, rate)), 0)
}
