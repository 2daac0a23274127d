package measure

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
)

// Temperatures returns the temperatures of all parameters, and then of each layer. noise
// is the noise of minibatches' gradients by parameter, or nil.
func Temperatures(m *diagnostics.Thermometer, parameters []graph.Tensor, requested float64, noise map[string]float64) []diagnostics.Temperature {
	all := diagnostics.Temperature{
		Layer: "all", Configurational: diagnostics.Number(m.Temperature()), StandardError: diagnostics.Number(m.TemperatureError()),
		Kinetic: diagnostics.Number(m.KineticTemperature()),
	}
	list := make([]diagnostics.Temperature, 1, 1+len(m.Layers))
	for i, layer := range m.Layers {
		list = append(list, diagnostics.Temperature{
			Layer: layer, Configurational: diagnostics.Number(m.Layer(i)), StandardError: diagnostics.Number(m.LayerError(i)),
			Kinetic: diagnostics.Number(m.KineticLayer(i)),
		})
	}
	for _, p := range parameters {
		if len(m.Layers) == 0 { // a method without temperatures
			break
		}
		n := p.Shape.Elements()
		for _, of := range []*diagnostics.Temperature{&all, &list[1+slices.Index(m.Layers, langevin.LayerOf(p.Name))]} {
			of.GradientNoise = diagnostics.Number((float64(of.GradientNoise)*float64(of.Weights) + noise[p.Name]*float64(n)) / float64(of.Weights+n))
			of.Weights += n
		}
	}
	list[0] = all
	for i := range list {
		at := &list[i]
		if noise == nil {
			at.GradientNoise = diagnostics.Number(math.NaN())
		}
		equilibrium := at.Kinetic
		if math.IsNaN(float64(equilibrium)) {
			equilibrium = diagnostics.Number(requested) * (1 + at.GradientNoise)
		}
		at.Drift = at.Configurational - equilibrium
	}
	return list
}
