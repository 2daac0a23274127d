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
		for _, s := range g.sources {
			if times[s.name] > 0 {
				continue
			}
			begin := time.Now()
			if _, err := g.module(s); err != nil {
				return err
			}
			times[s.name] = time.Since(begin)
		}
		return nil
	})
}
