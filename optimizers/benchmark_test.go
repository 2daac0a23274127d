package optimizers

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// BenchmarkUpdate updates 909 770 parameters, as a LeNet-like network has, on one thread.
func BenchmarkUpdate(b *testing.B) {
	const parameters = 909770
	for _, o := range customary {
		b.Run(o.Name(), func(b *testing.B) {
			r := start(b, setting{optimizer: o, dtype: tensor.Float32, rates: []float64{1e-4}, sizes: []int{parameters}})
			r.write(gradientName(0), 0, gradientsOf(0, 0, parameters))
			for b.Loop() {
				r.run(1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/parameters, "ns/parameter")
		})
	}
}
