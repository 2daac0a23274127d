package cuda

import (
	"github.com/pollen-ml/pollen/tensor"
)

// updateGeometries are those of optimizers and samplers.
var updateGeometries = map[string]geometry{
	"sgd_update": tiled, "momentum_update": tiled, "nesterov_update": tiled, "adagrad_update": tiled, "adadelta_update": tiled,
	"rmsprop_update": tiled, "adam_update": tiled, "adamw_update": tiled,

	"sgld_update": tiled, "psgld_update": tiled, "psgld_gamma_update": tiled, "fsgld_update": tiled, "accumulate_update": tiled,
	"sghmc_update": tiled, "baoab_update": tiled, "kinetic_fwd": tiled,
	"sgnht_update_euler_element": tiled, "sgnht_update_badodab_element": tiled,
	"sgnht_update_euler": thermostatEuler, "sgnht_update_badodab": thermostatBADODAB,

	"random_walk_move": tiled, "mala_share": tiled, "mala_move": tiled,
	"hmc_share":         func(p *placement, l *tensor.Launch) []call { return trajectory(p, l, 9) },
	"hmc_move":          func(p *placement, l *tensor.Launch) []call { return trajectory(p, l, 12) },
	"metropolis_decide": metropolisDecide,
	"prior_energy_fwd":  priorEnergy,

	"move_update": tiled, "whitened_move_fwd": fours, "kfac_factors_update": kfacFactors,
}

// updateTile is how many parameters a block moves, as in kernels/update.cuh and op.UpdateTile.
const updateTile = 4096

// tiled is a block to a tile of a launch's parameters, and fours to a thread.
func tiled(_ *placement, l *tensor.Launch) []call {
	return []call{{
		symbol: l.Kernel, blocks: [2]int{ceil(l.Count, updateTile), 1}, threads: wholeWarps(ceil(l.Count, 4), 512), arguments: l.Arguments,
	}}
}

// The arguments of a step of the thermostat whose chi is a parameter's.
const (
	thermostatW        = 1
	thermostatV        = 3
	thermostatRates    = 4
	thermostatChi      = 6
	thermostatHeader   = 7
	thermostatN        = 8
	thermostatNoise    = 11
	thermostatFriction = 13
)

// thermostatEuler moves the walkers, which leaves the sums of their velocities' squares, and then adapts chi.
func thermostatEuler(p *placement, l *tensor.Launch) []call {
	move, squares := withSquares(p, l)
	return []call{move, adapt(l, squares, 1)}
}

// thermostatBADODAB kicks, adapts chi, drifts, and adapts chi again.
func thermostatBADODAB(p *placement, l *tensor.Launch) []call {
	kick, squares := withSquares(p, l)
	_, suffix := stemOf(l.Kernel)
	a := l.Arguments
	drift := call{symbol: "sgnht_drift_" + suffix, blocks: kick.blocks, threads: kick.threads}
	drift.arguments = []tensor.Argument{tensor.Out(squares), a[thermostatW], a[thermostatV]}
	drift.arguments = append(append(drift.arguments, schedules(a)...), a[thermostatChi])
	drift.arguments = append(drift.arguments, a[thermostatN:thermostatNoise+1]...)
	drift.arguments = append(drift.arguments, a[thermostatFriction], a[len(a)-1])
	return []call{kick, adapt(l, squares, 0.5), drift, adapt(l, squares, 0.5)}
}

// withSquares is a step's first call, which fills one argument more.
func withSquares(p *placement, l *tensor.Launch) (call, *tensor.Buffer) {
	c := tiled(p, l)[0]
	squares := p.work(tensor.Float64, c.blocks[0])
	c.arguments = append([]tensor.Argument{tensor.Out(squares)}, l.Arguments...)
	return c, squares
}

// schedules are rates, temperatures and the header.
func schedules(a []tensor.Argument) []tensor.Argument {
	return []tensor.Argument{a[thermostatRates], a[thermostatRates+1], a[thermostatHeader]}
}

// adapt changes chi by a share of a step.
func adapt(l *tensor.Launch, squares *tensor.Buffer, share float64) call {
	a := l.Arguments
	_, suffix := stemOf(l.Kernel)
	arguments := append([]tensor.Argument{a[thermostatChi], tensor.In(squares)}, schedules(a)...)
	arguments = append(arguments, a[thermostatN:thermostatNoise]...)
	return call{
		symbol: "sgnht_adapt_" + suffix, blocks: [2]int{1, 1}, threads: wholeWarps(squares.Elements, 256),
		arguments: append(arguments, tensor.Int(squares.Elements), tensor.Real(tensor.Float64, share), a[len(a)-1]),
	}
}

// trajectory is a step of Hamiltonian Monte Carlo, which has one buffer more than its least number of arguments when momenta have masses.
func trajectory(p *placement, l *tensor.Launch, least int) []call {
	calls := tiled(p, l)
	if len(l.Arguments) > least {
		stem, suffix := stemOf(l.Kernel)
		calls[0].symbol = stem + "_masses_" + suffix
	}
	return calls
}

// metropolisDecide adds up the shares of all parameters before the test. The launch is (words, potential, chain, header, shares of each parameter, 8
// attributes, the numbers of shares of each parameter).
func metropolisDecide(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	const before, attributes = 4, 8
	parameters := (len(a) - before - attributes) / 2
	total := p.work(tensor.Float64, 1)
	var calls []call
	if parameters == 0 {
		calls = append(calls, call{
			symbol: "metropolis_no_shares_f64", blocks: [2]int{1, 1}, threads: warp, arguments: []tensor.Argument{tensor.Out(total)},
		})
	}
	for i := range parameters {
		begins, number := 0, a[before+parameters+attributes+i]
		if i == 0 {
			begins = 1
		}
		calls = append(calls, call{
			symbol: "metropolis_shares_f64", blocks: [2]int{1, 1}, threads: wholeWarps(integer(number), 256),
			arguments: []tensor.Argument{tensor.InOut(total), a[before+i], number, tensor.Int(begins)},
		})
	}
	arguments := append(append([]tensor.Argument{}, a[:before]...), tensor.In(total))
	arguments = append(arguments, a[before+parameters:before+parameters+attributes]...)
	return append(calls, call{symbol: l.Kernel, blocks: [2]int{1, 1}, threads: warp, arguments: arguments})
}

// priorEnergy is launch (y, w, n, family and four of its parameters, constant).
func priorEnergy(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	tiles, last := ceil(l.Count, updateTile), len(a)-1
	_, suffix := stemOf(l.Kernel)
	partial := p.work(tensor.Float64, tiles)
	return []call{
		{
			symbol: l.Kernel, blocks: [2]int{tiles, 1}, threads: wholeWarps(l.Count, 256),
			arguments: append([]tensor.Argument{tensor.Out(partial)}, a[1:last]...),
		},
		{
			symbol: "prior_energy_join_" + suffix, blocks: [2]int{1, 1}, threads: wholeWarps(tiles, 256),
			arguments: []tensor.Argument{a[0], tensor.In(partial), tensor.Int(tiles), a[2], a[last]},
		},
	}
}
