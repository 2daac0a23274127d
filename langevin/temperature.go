package langevin

import (
	"strings"

	"github.com/pollen-ml/pollen/graph"
)

// VirialPrefix begins the names of the metrics that Attach records: the sum over a parameter's elements of theta * g, g the gradient of
// U/N that the update followed.
const VirialPrefix = "theta.g "

// Thermometer averages the temperatures of each layer over steps. The configurational temperature theta . grad U / d has the expectation T in
// equilibrium, whatever the posterior, as long as U grows without bound. It says nothing for parameters with a flat prior that the loss does
// not bound. The kinetic temperature v.v/(h d), which samplers with momentum have besides, has the expectation T, too, up to what their comments
// say; at each step its variance is 2 T^2/d. Configurations take longer than velocities to find the equilibrium.
type Thermometer struct {
	Layers          []string // in the network's order
	dataSize        float64
	configurational gauge
	kinetic         gauge
	steps           float64
}

// gauge sums metrics by layer.
type gauge struct {
	sizes   []float64 // elements of each layer
	columns [][]int   // metrics of each layer
	sums    []float64
}

// NewThermometer reads the metrics that Attach made the program record.
func NewThermometer(p *graph.Program, dataSize int) *Thermometer {
	t := &Thermometer{dataSize: float64(dataSize)}
	elements := map[string]int{}
	for _, parameter := range p.Parameters() {
		elements[parameter.Name] = parameter.Shape.Elements()
	}
	at := map[string]int{}
	for column, metric := range p.Metrics() {
		gauge := &t.configurational
		name, ok := strings.CutPrefix(metric, VirialPrefix)
		if !ok {
			gauge = &t.kinetic
			name, ok = strings.CutPrefix(metric, KineticPrefix)
		}
		if !ok {
			continue
		}
		layer := Layer(name)
		i, ok := at[layer]
		if !ok {
			i = len(t.Layers)
			at[layer] = i
			t.Layers = append(t.Layers, layer)
			t.configurational.addLayer()
			t.kinetic.addLayer()
		}
		gauge.sizes[i] += float64(elements[name])
		gauge.columns[i] = append(gauge.columns[i], column)
	}
	return t
}

func (g *gauge) addLayer() {
	g.sizes, g.columns, g.sums = append(g.sizes, 0), append(g.columns, nil), append(g.sums, 0)
}

// Observe adds the steps of the session's last Run, of all its chains.
func (t *Thermometer) Observe(s *graph.Session, from, to int) {
	for step := from; step < to; step++ {
		for chain := range s.Chains() {
			t.configurational.add(s, chain, uint64(step))
			t.kinetic.add(s, chain, uint64(step))
			t.steps++
		}
	}
}

func (g *gauge) add(s *graph.Session, chain int, step uint64) {
	for i, columns := range g.columns {
		for _, column := range columns {
			g.sums[i] += s.Metric(chain, column, step)
		}
	}
}

// Reset forgets what was observed.
func (t *Thermometer) Reset() {
	clear(t.configurational.sums)
	clear(t.kinetic.sums)
	t.steps = 0
}

// Steps is how many steps, times chains, were observed.
func (t *Thermometer) Steps() int { return int(t.steps) }

// Layer is the mean configurational temperature of layer i.
func (t *Thermometer) Layer(i int) float64 {
	return t.dataSize * t.configurational.sums[i] / t.configurational.sizes[i] / t.steps
}

// Temperature is the mean configurational temperature of all parameters together.
func (t *Thermometer) Temperature() float64 { return t.dataSize * t.configurational.mean() / t.steps }

// KineticLayer is the mean kinetic temperature of layer i, NaN when the sampler has no momentum.
func (t *Thermometer) KineticLayer(i int) float64 {
	return t.kinetic.sums[i] / t.kinetic.sizes[i] / t.steps
}

// KineticTemperature is the mean kinetic temperature of all parameters together, NaN when the sampler has no momentum.
func (t *Thermometer) KineticTemperature() float64 { return t.kinetic.mean() / t.steps }

// mean is the sum over all layers for each of their elements.
func (g *gauge) mean() float64 {
	sum, size := 0.0, 0.0
	for i := range g.sums {
		sum += g.sums[i]
		size += g.sizes[i]
	}
	return sum / size
}
