package measure

import (
	"math"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/mcmc"
)

// Measurements has what a run measures of its chains from step to step. Checkpoints keep it, and
// diagnostics are computed from it.
type Measurements struct {
	Loss        float64                  // mean of the last window
	Thermometer *diagnostics.Thermometer // of the whole sampling phase
	HeldOut     *HeldOut                 // nil without held-out images
	Validation  *Validation              // nil without validation images

	trace     thinnedTrace   // of the watched weight in the first chain, one value for each step
	weights   []thinnedTrace // of the watched weight, by chain, in the sampling phase
	losses    []thinnedTrace // of the minibatch's loss, by chain, in the sampling phase
	first     []float64      // loss of the first step, by chain
	proposals float64        // number of proposals in the sampling phase; 0 without a Metropolis test
	accepted  float64        // sum of the proposals' acceptance probabilities
	diverged  float64        // number of trajectories that diverged; NaN if it is not measured
	recent    *diagnostics.Thermometer
}

// Trace lengths: of the first chain, of each chain in the diagnostics, and of each chain when
// R-hat is computed while a run continues, which must not slow down a long run.
const (
	traceValues = 10000
	chainValues = 500
	liveValues  = 500
)

// New returns empty Measurements. Energies are scale times as large as the recorded loss.
func New(program *graph.Program, chains, scale int) *Measurements {
	m := &Measurements{
		trace:       newTrace(2 * traceValues),
		Thermometer: diagnostics.NewThermometer(program, scale), recent: diagnostics.NewThermometer(program, scale),
	}
	for range chains {
		m.weights, m.losses = append(m.weights, newTrace(traceValues)), append(m.losses, newTrace(traceValues))
	}
	return m
}

// AddStep adds the loss and the watched weight of a chain at a step.
func (m *Measurements) AddStep(chain int, loss, weight float64, sampling bool) {
	if chain == 0 {
		m.trace.add(weight)
	}
	if len(m.first) == chain {
		m.first = append(m.first, loss)
	}
	if sampling {
		m.losses[chain].add(loss)
		m.weights[chain].add(weight)
	}
}

// AddTemperatures adds the temperatures of some chains of a session at a step of the sampling phase
// and, for a sampler with a Metropolis test, its proposals.
func (m *Measurements) AddTemperatures(s *graph.Session, chains []int, step int, proposals bool) {
	m.Thermometer.ObserveChains(s, step, step+1, chains)
	if !proposals {
		return
	}
	for _, chain := range chains {
		m.proposals++
		m.accepted += s.Metric(chain, mcmc.TraceAcceptance, uint64(step))
		m.diverged += s.Metric(chain, mcmc.TraceDiverged, uint64(step))
	}
}

// WindowTemperature returns the temperature of some chains over the steps of a window only.
func (m *Measurements) WindowTemperature(s *graph.Session, chains []int, from, to int) float64 {
	m.recent.Reset()
	m.recent.ObserveChains(s, from, to, chains)
	return m.recent.Temperature()
}

// LiveRHat returns the split R-hat of the watched weight so far.
func (m *Measurements) LiveRHat() diagnostics.Number { return RHat(shortened(m.weights, liveValues)) }

func shortened(traces []thinnedTrace, most int) [][]float64 {
	short := make([][]float64, len(traces))
	for i, trace := range traces {
		short[i] = thinned(trace.values, most)
	}
	return short
}

// Trace returns values of the watched weight in the first chain, evenly spaced.
func (m *Measurements) Trace() []float64 { return thinned(m.trace.values, traceValues) }

// WeightRHat returns the split R-hat of the watched weight.
func (m *Measurements) WeightRHat() diagnostics.Number { return RHat(valuesOf(m.weights)) }

// LossRHat returns the split R-hat of the minibatch's loss.
func (m *Measurements) LossRHat() diagnostics.Number { return RHat(valuesOf(m.losses)) }

// Weights returns values of the watched weight, by chain, evenly spaced.
func (m *Measurements) Weights() [][]float64 { return shortened(m.weights, chainValues) }

// Losses returns values of the minibatch's loss, by chain, evenly spaced.
func (m *Measurements) Losses() [][]float64 { return shortened(m.losses, chainValues) }

// FirstLoss returns a chain's loss in its first step, NaN if that is not known.
func (m *Measurements) FirstLoss(chain int) float64 {
	if chain >= len(m.first) {
		return math.NaN()
	}
	return m.first[chain]
}

// Acceptance returns the mean acceptance probability, and the fraction of trajectories that
// diverged; NaN without a Metropolis test.
func (m *Measurements) Acceptance() (accepted, diverged diagnostics.Number) {
	return diagnostics.Number(m.accepted / m.proposals), diagnostics.Number(m.diverged / m.proposals)
}

// The names of the measurements in a checkpoint.
const (
	measuredName    = "measured"     // proposals, accepted, diverged, the last window's loss
	firstName       = "first losses" // of each chain, after the first step
	thermometerName = "thermometer"  // see diagnostics.Thermometer.State
	traceName       = "trace"        // of the watched weight, see thinnedTrace.state
	lossPrefix      = "loss "        // of each chain's minibatch loss
	weightPrefix    = "weight "      // of each chain's watched weight
	predictedName   = "predicted"    // see HeldOut.state; only with held-out images
	validationName  = "validation"   // see Validation.state; only with validation images
)

// traces returns all traces and their names, beginning with the first chain's weight.
func (m *Measurements) traces() (names []string, all []*thinnedTrace) {
	names, all = []string{traceName}, []*thinnedTrace{&m.trace}
	for i := range m.losses {
		names = append(names, lossPrefix+strconv.Itoa(i), weightPrefix+strconv.Itoa(i))
		all = append(all, &m.losses[i], &m.weights[i])
	}
	return names, all
}

// State calls add with each measurement as a named list of numbers, always in the same order.
func (m *Measurements) State(add func(name string, values []float64)) {
	add(measuredName, []float64{m.proposals, m.accepted, m.diverged, m.Loss})
	if len(m.first) > 0 {
		add(firstName, m.first)
	}
	add(thermometerName, m.Thermometer.State())
	names, traces := m.traces()
	for i, s := range traces {
		add(names[i], s.state())
	}
	if m.HeldOut != nil {
		add(predictedName, m.HeldOut.state())
	}
	if m.Validation != nil {
		add(validationName, m.Validation.state())
	}
}

// TraceBytes returns how many bytes the traces take in a checkpoint.
func (m *Measurements) TraceBytes() (n uint64) {
	_, all := m.traces()
	for _, s := range all {
		n += 8 * uint64(len(s.values))
	}
	if m.Validation != nil {
		n += 8 * uint64(len(m.Validation.sum))
	}
	return n
}

// Restore reads the numbers of State, which were measured on held-out images with the hash
// heldOut. It reports whether HeldOut has other images; the observations of these then begin at
// the present step.
func (m *Measurements) Restore(numbers map[string][]float64, heldOut string) (otherImages bool, err error) {
	sums := numbers[measuredName]
	if len(sums) != 4 {
		return false, errors.Errorf("%s must have 4 numbers, got %d", measuredName, len(sums))
	}
	m.proposals, m.accepted, m.diverged, m.Loss = sums[0], sums[1], sums[2], sums[3]
	if err := m.Thermometer.Restore(numbers[thermometerName]); err != nil {
		return false, err
	}
	names, all := m.traces()
	for i, s := range all {
		if err := s.restore(numbers[names[i]]); err != nil {
			return false, errors.WithMessage(err, names[i])
		}
	}
	m.first = slices.Clone(numbers[firstName])
	m.Validation.restore(numbers[validationName])
	predicted := numbers[predictedName]
	if m.HeldOut != nil && len(predicted) > 0 && heldOut != m.HeldOut.images {
		return true, nil
	}
	return false, errors.WithMessage(m.HeldOut.restore(predicted), predictedName)
}
