package optest

import (
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

func TestHost(t *testing.T) {
	for _, threads := range testenv.Some(t, 1, []int{2, 1}) {
		host := tensor.NewHost(threads)
		t.Run(host.Name(), func(t *testing.T) { Run(t, host) })
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
}

// wrapped hides that a device is the host.
type wrapped struct{ tensor.Device }

func TestOtherDevice(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	RunCases(t, wrapped{host}, append(pointwiseCases()[:8], gatherCases()[:4]...))
}

func BenchmarkHost(b *testing.B) {
	host := tensor.NewHost(0)
	defer host.Close()
	Benchmark(b, host)
}
