package diagnostics

import (
	"math"
	"strings"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

// Thermometer averages the temperatures of each layer over steps. The configurational temperature
// theta . grad U / d has the expectation T in equilibrium, whatever the posterior, as long as U
// grows without bound. It means nothing for parameters with a flat prior that the loss does not
// bound. The kinetic temperature v.v/(h d) of samplers with momentum also has the expectation T, up
// to what their comments state; at each step its variance is 2 T^2/d. Configurations take longer
// than velocities to reach equilibrium.
//
// A configurational temperature means little without its standard error. Over a time t, the number
// of steps times the effective step size, the error is about sqrt(2 T |theta|^2/(d^2 t)) in
// equilibrium. Weights constrained only by a prior N(0, s^2) have the variance T s^2, and take the
// time 2 s^2/(d e^2) until the error is e T.
type Thermometer struct {
	Layers          []string // in the network's order
	dataSize        float64
	configurational average
	kinetic         average
	steps           float64
}

// average sums metrics by layer.
type average struct {
	sizes   []float64  // elements of each layer
	metrics [][]string // of each layer
	sums    []float64
	batches [][]batchMeans // by layer, with all layers together last, and by chain
}

// NewThermometer returns a Thermometer for the metrics that langevin.Attach has the program record.
func NewThermometer(p *graph.Program, dataSize int) *Thermometer {
	t := &Thermometer{dataSize: float64(dataSize)}
	elements := map[string]int{}
	for _, parameter := range p.Parameters() {
		elements[parameter.Name] = parameter.Shape.Elements()
	}
	at := map[string]int{}
	for _, metric := range p.Metrics() {
		gauge := &t.configurational
		name, ok := strings.CutPrefix(metric, langevin.VirialPrefix)
		if !ok {
			gauge = &t.kinetic
			name, ok = strings.CutPrefix(metric, langevin.KineticPrefix)
		}
		if !ok {
			continue
		}
		layer := langevin.LayerOf(name)
		i, ok := at[layer]
		if !ok {
			i = len(t.Layers)
			at[layer] = i
			t.Layers = append(t.Layers, layer)
			t.configurational.addLayer()
			t.kinetic.addLayer()
		}
		gauge.sizes[i] += float64(elements[name])
		gauge.metrics[i] = append(gauge.metrics[i], metric)
	}
	return t
}

func (g *average) addLayer() {
	g.sizes, g.metrics, g.sums = append(g.sizes, 0), append(g.metrics, nil), append(g.sums, 0)
}

// Observe adds the steps from to to-1 of the session's last Run, for all its chains.
func (t *Thermometer) Observe(s *graph.Session, from, to int) {
	chains := make([]int, s.Chains())
	for i := range chains {
		chains[i] = i
	}
	t.ObserveChains(s, from, to, chains)
}

// ObserveChains is Observe for the given chains, such as the coldest of langevin.Replicas. Their
// number must be the same in every call. Each chain continues the trace of the chain that was at
// its position in the previous call.
func (t *Thermometer) ObserveChains(s *graph.Session, from, to int, chains []int) {
	for step := from; step < to; step++ {
		for place, chain := range chains {
			t.configurational.add(s, place, chain, uint64(step))
			t.kinetic.add(s, place, chain, uint64(step))
			t.steps++
		}
	}
}

// add adds a step of a chain: its metrics to the sums, and each metric and their total to the batch
// means from which errors are estimated. place is the chain's index among those averaged.
func (g *average) add(s *graph.Session, place, chain int, step uint64) {
	if len(g.batches) == 0 {
		g.batches = make([][]batchMeans, len(g.metrics)+1)
	}
	if len(g.batches[0]) == place {
		for i := range g.batches {
			g.batches[i] = append(g.batches[i], batchMeans{})
		}
	}
	total := 0.0
	for i, metrics := range g.metrics {
		value := 0.0
		for _, metric := range metrics {
			value += s.Metric(chain, metric, step)
		}
		g.sums[i] += value
		g.batches[i][place].add(value)
		total += value
	}
	g.batches[len(g.metrics)][place].add(total)
}

// Reset discards all observations.
func (t *Thermometer) Reset() {
	for _, g := range t.averages() {
		clear(g.sums)
		g.batches = nil
	}
	t.steps = 0
}

// Steps returns the number of observed steps, times chains.
func (t *Thermometer) Steps() int { return int(t.steps) }

// Layer returns the mean configurational temperature of layer i.
func (t *Thermometer) Layer(i int) float64 {
	return t.dataSize * t.configurational.sums[i] / t.configurational.sizes[i] / t.steps
}

// Temperature returns the mean configurational temperature of all parameters together.
func (t *Thermometer) Temperature() float64 { return t.dataSize * t.configurational.mean() / t.steps }

// LayerError returns the standard error of Layer, by batch means within chains or by the spread of
// chains, whichever is larger; NaN for fewer than two steps. It is too small for runs shorter than
// about ten times the layer's memory of its state.
func (t *Thermometer) LayerError(i int) float64 {
	return t.dataSize * t.configurational.standardError(i) / t.configurational.sizes[i]
}

// TemperatureError returns the standard error of Temperature, computed as LayerError is.
func (t *Thermometer) TemperatureError() float64 {
	_, size := t.configurational.total()
	return t.dataSize * t.configurational.standardError(len(t.Layers)) / size
}

// KineticLayer returns the mean kinetic temperature of layer i, NaN when the sampler has no
// momentum.
func (t *Thermometer) KineticLayer(i int) float64 {
	return t.kinetic.sums[i] / t.kinetic.sizes[i] / t.steps
}

// KineticTemperature returns the mean kinetic temperature of all parameters together, NaN when the
// sampler has no momentum.
func (t *Thermometer) KineticTemperature() float64 { return t.kinetic.mean() / t.steps }

// total returns the sum over all layers, and the number of their elements.
func (g *average) total() (sum, size float64) {
	for i := range g.sums {
		sum += g.sums[i]
		size += g.sizes[i]
	}
	return sum, size
}

// mean returns the sum over all layers divided by the number of their elements.
func (g *average) mean() float64 {
	sum, size := g.total()
	return sum / size
}

// standardError returns the standard error of a step's sum over a layer, or over all layers.
func (g *average) standardError(layer int) float64 {
	if len(g.batches) == 0 {
		return math.NaN()
	}
	return standardError(g.batches[layer])
}
