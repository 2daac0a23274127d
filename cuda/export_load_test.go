package cuda

import (
	"time"

	"github.com/pollen-ml/pollen/tensor"
)

// CompileTimes are how long the driver takes for each file of kernels that a device's first GPU
// uses.
func CompileTimes(d tensor.Device) (map[string]time.Duration, error) {
	g, times := d.(*device).gpus[0], map[string]time.Duration{}
	return times, g.do(func() error {
		for symbol, s := range g.sources {
			begin := time.Now()
			if _, err := g.function(symbol, 0); err != nil {
				return err
			}
			times[s.name] += time.Since(begin)
		}
		return nil
	})
}
