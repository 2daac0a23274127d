package diagnostics

import (
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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

// Measured is an estimate with its standard error.
type Measured struct {
	Value         Number `json:"value"`
	StandardError Number `json:"standardError"`
	// Groups is the number of independent parts of the data that the standard error was estimated
	// from; 0 if they are many.
	Groups int `json:"groups,omitempty"`
}

// fewGroups is the minimum number of groups for which the standard error is printed. With fewer,
// the 95 % interval by Student's t-distribution is printed.
const fewGroups = 8

// Interval returns the bounds of the 95 % confidence interval, by Student's t-distribution if
// Groups is given.
func (m Measured) Interval() (low, high float64) {
	quantile := distuv.UnitNormal.Quantile(0.975)
	if m.Groups > 0 {
		quantile = distuv.StudentsT{Sigma: 1, Nu: float64(max(1, m.Groups-1))}.Quantile(0.975)
	}
	off := quantile * float64(m.StandardError)
	return float64(m.Value) - off, float64(m.Value) + off
}

// String rounds the value and its error to the first digit of the error, as in "8 ± 2" and "110 ±
// 40". An error from fewer than eight groups would mislead: the 95 % interval is then written
// instead, as in "100 (50 to 160)".
func (m Measured) String() string {
	place := math.Floor(math.Log10(float64(m.StandardError)))
	if math.IsInf(place, 0) || math.IsNaN(place) {
		return fmt.Sprintf("%.3g ± %.3g", float64(m.Value), float64(m.StandardError))
	}
	unit := math.Pow(10, place)
	digits := max(0, -int(place))
	rounded := func(v float64) string { return fmt.Sprintf("%.*f", digits, math.Round(v/unit)*unit+0) } // no negative zero
	if m.Groups > 0 && m.Groups < fewGroups {
		low, high := m.Interval()
		return fmt.Sprintf("%s (%s to %s)", rounded(float64(m.Value)), rounded(low), rounded(high))
	}
	return fmt.Sprintf("%s ± %s", rounded(float64(m.Value)), rounded(float64(m.StandardError)))
}

// Temperature is the temperature of the weights of a layer in the sampling phase.
//
// Two errors of opposite sign meet in the configurational temperature: the noise of minibatches
// heats, and while weights grow or shrink, it contains a drift,
//
//	configurational = kinetic + drift,    drift = - friction d|theta|^2/dt / (2 d)
//
// in units of the step size for d weights, which is negative while they grow. A sampler without
// velocities has no kinetic temperature. T (1 + GradientNoise) is then used instead of it, and the
// drift is as rough as that estimate.
type Temperature struct {
	Layer           string `json:"layer"`           // "all" for the weights of all layers
	Weights         int    `json:"weights"`         // number of weights
	Configurational Number `json:"configurational"` // equal to the requested one in equilibrium
	StandardError   Number `json:"standardError"`   // of Configurational
	Kinetic         Number `json:"kinetic"`         // of the velocities; NaN without any
	Drift           Number `json:"drift"`           // of Configurational
	// GradientNoise is the heating by minibatches without any correction by the sampler, relative
	// to T, estimated from the last state of a chain.
	GradientNoise Number `json:"gradientNoise"`
}

// Mixing describes how well the predictions of the chains have mixed in the sampling phase. Its
// statistics are for the probability of one fixed class, for each of some held-out images.
type Mixing struct {
	Images int `json:"images"` // images whose probabilities change at all
	Chains int `json:"chains"` // that were compared
	Values int `json:"values"` // of each image and chain
	// RHat is the 95th percentile over images of split R-hat: infinite, which is null in JSON, if
	// no chain moves.
	RHat Number `json:"rHat"`
	// BulkESS and TailESS are effective sample sizes of all chains together, medians over images.
	// States between the kept samples count as well, so that they can exceed the number of these.
	BulkESS Number `json:"bulkESS"`
	TailESS Number `json:"tailESS"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Mixing) UnmarshalJSON(content []byte) error {
	type plain Mixing
	if err := json.Unmarshal(content, (*plain)(m)); err != nil {
		return err
	}
	if math.IsNaN(float64(m.RHat)) && m.Values > 0 {
		m.RHat = Number(math.Inf(1))
	}
	return nil
}
