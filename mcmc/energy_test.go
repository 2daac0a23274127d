package mcmc_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/mcmc"
)

// TestEnergies: at draws of HMC and NUTS, positions and momenta have the density exp(-H). So the
// energy minus U/T, the kinetic energy of d momenta, has a mean and a variance of d/2, also where
// proposals are rejected and whatever the temperature and the masses are.
func TestEnergies(t *testing.T) {
	const dimensions, temperature = 3, 0.7
	chains, draws := trial.ChainsOf(t, 64), trial.StepsOf(t, 400)
	masses := map[string][]float64{trial.ParameterName: {0.5, 1, 2}}
	for name, sampler := range map[string]mcmc.Sampler{
		"hmc":         mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3, Jitter: 0.2}, StepSize: 1.2},
		"hmc, masses": mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 3, Masses: masses}, StepSize: 0.9},
		"nuts":        mcmc.NUTS{StepSize: 1.1},
	} {
		t.Run(name, func(t *testing.T) {
			line := normalLine(1, temperature)
			traces := exactRun{
				field: line.field, dimensions: dimensions, chains: chains, temperature: temperature, start: line.start, sampler: sampler,
			}.draw(t, draws, 1)
			if rate := meanOf(traceOf(t, traces, mcmc.TraceAcceptance, 0)); rate > 0.97 {
				t.Errorf("the mean acceptance is %v: energies hardly change", rate)
			}
			kinetic, potentials := traceOf(t, traces, mcmc.TraceEnergy, 0), traceOf(t, traces, mcmc.TracePotential, 0)
			for chain := range kinetic {
				for i := range kinetic[chain] {
					kinetic[chain][i] -= potentials[chain][i] / temperature
				}
			}
			mean := scoreOf(kinetic, func(k float64) float64 { return k }, dimensions/2.)
			variance := scoreOf(kinetic, func(k float64) float64 { return (k - dimensions/2.) * (k - dimensions/2.) }, dimensions/2.)
			if z := math.Max(math.Abs(mean), math.Abs(variance)); !(z <= trial.ZLimit) {
				t.Errorf("the mean of the kinetic energy is off by %.1f standard errors, its variance by %.1f", mean, variance)
			}
		})
	}
}

// TestAccepted: a draw differs from the one before exactly if its proposal was accepted.
func TestAccepted(t *testing.T) {
	for name, proposal := range map[string]mcmc.Proposal{"random walk": mcmc.RandomWalk{}, "mala": mcmc.MALA{}, "hmc": mcmc.HMC{LeapfrogSteps: 3}} {
		line := normalLine(1, 1)
		traces := exactRun{
			field: line.field, dimensions: 2, chains: 4, temperature: 1, start: line.start, sampler: mcmc.Metropolis{Proposal: proposal, StepSize: 1.3},
		}.draw(t, 200, 1)
		accepted, draws := traceOf(t, traces, mcmc.TraceAccepted, 0), traceOf(t, traces, "w", 0)
		total := 0.0
		for chain, a := range accepted {
			for i := range a {
				total += a[i]
				if i > 0 && (a[i] == 1) != (draws[chain][i] != draws[chain][i-1]) {
					t.Fatalf("%s, chain %d, draw %d: accepted is %v, from %v to %v", name, chain, i, a[i], draws[chain][i-1], draws[chain][i])
				}
			}
		}
		if rate := total / 800; rate < 0.2 || rate > 0.98 {
			t.Errorf("%s: %v of the proposals were accepted", name, rate)
		}
	}
}
