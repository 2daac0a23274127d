package pollen

import (
	"encoding/json"
	"math"

	"github.com/pollen-ml/pollen/diagnostics"
)

// Diagnostics describe the chains of a run. For a resumed run they cover the steps since then.
// Values that were not measured are NaN, null in JSON.
type Diagnostics struct {
	Made    int `json:"made"` // steps
	From    int `json:"from"` // the step that they begin at
	Samples int `json:"samples"`

	Watched string    `json:"watched"` // a weight
	Trace   []float64 `json:"trace"`   // of it in the first chain; at most traceValues, evenly spaced

	LossRHat   Number `json:"lossRHat"` // split R-hat of the minibatch loss, in the sampling phase
	WeightRHat Number `json:"weightRHat"`

	Temperatures []Temperature `json:"temperatures,omitempty"` // of all parameters, then by layer
	Acceptance   Number        `json:"acceptance"`             // mean acceptance probability
	Swaps        Number        `json:"swaps"`                  // share of swap attempts that succeeded
}

// traceValues bounds the trace that is kept.
const traceValues = 10000

// Temperature is the temperature of parameters in the sampling phase.
type Temperature struct {
	Layer           string `json:"layer"`           // "all" for all parameters
	Configurational Number `json:"configurational"` // in equilibrium the requested one
	StandardError   Number `json:"standardError"`   // of that
	Kinetic         Number `json:"kinetic"`         // of velocities, where there are any
}

// Number is a float64 that is null in JSON if it is not finite.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); v-v != 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(content []byte) error {
	if string(content) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(content, (*float64)(n))
}

// Diagnostics reads the diagnostics that a finished or stopped run left.
func (r *Run) Diagnostics() (*Diagnostics, error) {
	d := &Diagnostics{}
	if err := readJSON(r.folder, diagnosticsFile, d); err != nil {
		return nil, err
	}
	return d, nil
}

// diagnose computes diagnostics from the steps made so far.
func (t *training) diagnose() *Diagnostics {
	d := &Diagnostics{
		Made: int(t.session.Steps()), From: t.from, Samples: t.samples, Watched: t.manifest.Watched, Trace: thinned(t.trace, traceValues),
		LossRHat: Number(t.rHat(t.lossTrace)), WeightRHat: Number(t.rHat(t.weightTrace)),
		Acceptance: Number(t.accepted / t.proposals), Swaps: Number(math.NaN()),
	}
	if t.replicas != nil {
		if v, err := t.replicas.Acceptance(t.session); err == nil {
			d.Swaps = Number(v)
		}
	}
	m := t.thermometer
	d.Temperatures = []Temperature{{"all", Number(m.Temperature()), Number(m.TemperatureError()), Number(m.KineticTemperature())}}
	for i, layer := range m.Layers {
		d.Temperatures = append(d.Temperatures, Temperature{layer, Number(m.Layer(i)), Number(m.LayerError(i)), Number(m.KineticLayer(i))})
	}
	return d
}

// rHat is the split R-hat of chains; NaN if they are too short to be split, and for methods that do
// not sample.
func (t *training) rHat(chains [][]float64) float64 {
	v, err := diagnostics.SplitRHat(chains)
	if err != nil || !t.course.traits().tempered {
		return math.NaN()
	}
	return v
}

// thinned is at most about that many values of a trace, evenly spaced.
func thinned(trace []float64, most int) []float64 {
	if len(trace) <= most {
		return trace
	}
	var short []float64
	for at := 0; at < len(trace); at += 1 + len(trace)/most {
		short = append(short, trace[at])
	}
	return short
}
