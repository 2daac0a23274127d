package langevin

import (
	"strings"

	"github.com/pollen-ml/pollen/graph"
)

// VirialPrefix begins the names of the metrics that Attach records: the sum over a parameter's elements of theta * g, g the gradient of
// U/N that the update followed.
const VirialPrefix = "theta.g "

// Thermometer averages the configurational temperature theta . grad U / d of each layer over steps. Its expectation is T in
// equilibrium, whatever the posterior, as long as U grows without bound. It says nothing for parameters with a flat prior that the loss
// does not bound.
type Thermometer struct {
	Layers   []string // in the network's order
	dataSize float64
	sizes    []float64 // elements of each layer
	columns  [][]int   // metrics of each layer
	sums     []float64
	steps    float64
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
		name, ok := strings.CutPrefix(metric, VirialPrefix)
		if !ok {
			continue
		}
		layer := Layer(name)
		i, ok := at[layer]
		if !ok {
			i = len(t.Layers)
			at[layer] = i
			t.Layers = append(t.Layers, layer)
			t.sizes = append(t.sizes, 0)
			t.columns = append(t.columns, nil)
		}
		t.sizes[i] += float64(elements[name])
		t.columns[i] = append(t.columns[i], column)
	}
	t.sums = make([]float64, len(t.Layers))
	return t
}

// Observe adds the steps of the session's last Run, of all its chains.
func (t *Thermometer) Observe(s *graph.Session, from, to int) {
	for step := from; step < to; step++ {
		for chain := range s.Chains() {
			for i, columns := range t.columns {
				for _, column := range columns {
					t.sums[i] += s.Metric(chain, column, uint64(step))
				}
			}
			t.steps++
		}
	}
}

// Reset forgets what was observed.
func (t *Thermometer) Reset() {
	clear(t.sums)
	t.steps = 0
}

// Steps is how many steps, times chains, were observed.
func (t *Thermometer) Steps() int { return int(t.steps) }

// Layer is the mean configurational temperature of layer i.
func (t *Thermometer) Layer(i int) float64 { return t.dataSize * t.sums[i] / t.sizes[i] / t.steps }

// Temperature is the mean configurational temperature of all parameters together.
func (t *Thermometer) Temperature() float64 {
	sum, size := 0.0, 0.0
	for i := range t.sums {
		sum += t.sums[i]
		size += t.sizes[i]
	}
	return t.dataSize * sum / size / t.steps
}
