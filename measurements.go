package pollen

import (
	"strconv"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// measurements are what is measured of a run's chains while they go: checkpoints keep them, and
// diagnostics are made of them.
type measurements struct {
	from        int // the step that they begin at
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

// tensors are the measurements as numbers, which restore takes back.
func (m *measurements) tensors() (tensors []safetensors.Tensor) {
	numbers := func(name string, values []float64) {
		tensors = append(tensors, safetensors.Tensor{
			Name: name, DType: safetensors.F64, Shape: []uint64{uint64(len(values))}, Data: tensor.Bytes(values),
		})
	}
	numbers(measuredTensor, []float64{m.proposals, m.accepted, m.diverged, m.loss})
	numbers(thermometerTensor, m.thermometer.State())
	names, all := m.series()
	for i, s := range all {
		numbers(names[i], s.state())
	}
	if m.probe != nil {
		numbers(predictedTensor, m.probe.state())
	}
	return tensors
}

// bytes is how many their traces take in a checkpoint.
func (m *measurements) bytes() (n uint64) {
	_, all := m.series()
	for _, s := range all {
		n += 8 * uint64(len(s.values))
	}
	return n
}

// restore takes them back, as measured on these held-out images.
func (m *measurements) restore(tensors []safetensors.Tensor, watched string, e environment) error {
	numbers := map[string][]float64{}
	for _, got := range tensors {
		if got.DType != safetensors.F64 {
			return errors.Errorf("tensor %s holds %s, wants F64", got.Name, got.DType)
		}
		values := make([]float64, len(got.Data)/8)
		copy(tensor.Bytes(values), got.Data)
		numbers[got.Name] = values
	}
	measured := numbers[measuredTensor]
	if len(measured) != 4 {
		return errors.Errorf("%s has %d numbers, wants 4", measuredTensor, len(measured))
	}
	m.proposals, m.accepted, m.diverged, m.loss = measured[0], measured[1], measured[2], measured[3]
	if err := m.thermometer.Restore(numbers[thermometerTensor]); err != nil {
		return err
	}
	names, all := m.series()
	for i, s := range all {
		if err := s.restore(numbers[names[i]]); err != nil {
			return errors.WithMessage(err, names[i])
		}
	}
	return m.restoreProbe(watched, numbers[predictedTensor], e)
}

// restoreProbe takes back a state of the probe that watched these images; "" where an earlier
// version did not keep which. On others it watches from here on.
func (m *measurements) restoreProbe(images string, state []float64, e environment) error {
	if p := m.probe; p != nil && len(state) > 1 {
		other := images != p.images
		if images == "" {
			other = state[1] != 0 && int(state[1]) != len(p.traces)
		}
		if other {
			e.remark("the held-out images are not those that chains were watched on before: what they predict is watched on these from here on")
			return nil
		}
	}
	return errors.WithMessage(m.probe.restore(state), predictedTensor)
}
