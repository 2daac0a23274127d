package pollen

import (
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// measurements are what is measured of a run's chains while they go: checkpoints keep them, and
// diagnostics are made of them.
type measurements struct {
	loss        float64
	trace       series                   // of the watched weight, first chain, one value per step
	weights     []series                 // the same, of each chain, in the sampling phase
	losses      []series                 // of each chain's minibatch loss, in the sampling phase
	proposals   float64                  // with a Metropolis test: in the sampling phase
	accepted    float64                  // the sum of their acceptance probabilities
	diverged    float64                  // how many of their trajectories did; NaN if that is not measured
	thermometer *diagnostics.Thermometer // of the whole sampling phase
	recent      *diagnostics.Thermometer // of the last window
	probe       *probe                   // of held-out images; nil without them
}

// newMeasurements are of nothing yet. Scale is how many times as large energies are as the loss
// that is recorded.
func newMeasurements(program *graph.Program, chains, scale int) measurements {
	m := measurements{
		trace:       newSeries(2 * traceValues),
		thermometer: diagnostics.NewThermometer(program, scale), recent: diagnostics.NewThermometer(program, scale),
	}
	for range chains {
		m.weights, m.losses = append(m.weights, newSeries(traceValues)), append(m.losses, newSeries(traceValues))
	}
	return m
}

// The names of their tensors in a checkpoint.
const (
	measuredTensor    = "measured"    // proposals, accepted, diverged, the last window's loss
	thermometerTensor = "thermometer" // see diagnostics.Thermometer.State
	traceTensor       = "trace"       // of the watched weight, see series.state
	lossPrefix        = "loss "       // of each chain's minibatch loss
	weightPrefix      = "weight "     // of each chain's watched weight
	predictedTensor   = "predicted"   // see probe.state; only where held-out images are watched
)

// series are all traces by their names, that of the weight first.
func (m *measurements) series() (names []string, all []*series) {
	names, all = []string{traceTensor}, []*series{&m.trace}
	for i := range m.losses {
		names = append(names, lossPrefix+strconv.Itoa(i), weightPrefix+strconv.Itoa(i))
		all = append(all, &m.losses[i], &m.weights[i])
	}
	return names, all
}

// checkpoint returns the state of all chains, and what was measured of them.
func (t *training) checkpoint() (rundir.Checkpoint, error) {
	s := t.session
	c := rundir.Checkpoint{Steps: int(s.Steps()), Measured: t.measured.numbers()}
	if probe := t.measured.probe; probe != nil {
		c.HeldOut = probe.images
	}
	for chain := range s.Chains() {
		state := make([]byte, s.ChainBytes())
		if err := s.Save(chain, state); err != nil {
			return c, err
		}
		c.Chains = append(c.Chains, state)
	}
	return c, nil
}

// restore puts the session and the measurements back to a checkpoint.
func (t *training) restore(c rundir.Checkpoint) error {
	s := t.session
	if len(c.Chains) != s.Chains() {
		return errors.Errorf("it has %d chains, the run %d", len(c.Chains), s.Chains())
	}
	for chain, state := range c.Chains {
		if err := s.Restore(chain, state, uint64(c.Steps)); err != nil {
			return err
		}
	}
	return t.measured.restore(c.Measured, c.HeldOut, t.environment)
}

// numbers returns the measurements as lists of numbers, which restore takes.
func (m *measurements) numbers() []rundir.Measurement {
	all := []rundir.Measurement{
		{Name: measuredTensor, Values: []float64{m.proposals, m.accepted, m.diverged, m.loss}},
		{Name: thermometerTensor, Values: m.thermometer.State()},
	}
	names, traces := m.series()
	for i, s := range traces {
		all = append(all, rundir.Measurement{Name: names[i], Values: s.state()})
	}
	if m.probe != nil {
		all = append(all, rundir.Measurement{Name: predictedTensor, Values: m.probe.state()})
	}
	return all
}

// bytes is how many their traces take in a checkpoint.
func (m *measurements) bytes() (n uint64) {
	_, all := m.series()
	for _, s := range all {
		n += 8 * uint64(len(s.values))
	}
	return n
}

// restore takes them back, as measured on held-out images with the hash heldOut.
func (m *measurements) restore(measured []rundir.Measurement, heldOut string, e environment) error {
	numbers := map[string][]float64{}
	for _, got := range measured {
		numbers[got.Name] = got.Values
	}
	sums := numbers[measuredTensor]
	if len(sums) != 4 {
		return errors.Errorf("%s must have 4 numbers, got %d", measuredTensor, len(sums))
	}
	m.proposals, m.accepted, m.diverged, m.loss = sums[0], sums[1], sums[2], sums[3]
	if err := m.thermometer.Restore(numbers[thermometerTensor]); err != nil {
		return err
	}
	names, all := m.series()
	for i, s := range all {
		if err := s.restore(numbers[names[i]]); err != nil {
			return errors.WithMessage(err, names[i])
		}
	}
	if p := m.probe; p != nil && len(numbers[predictedTensor]) > 0 && heldOut != p.images {
		e.remark("the held-out images are not those that chains were watched on before: predictions are watched on these from here on")
		return nil
	}
	return errors.WithMessage(m.probe.restore(numbers[predictedTensor]), predictedTensor)
}
