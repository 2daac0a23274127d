package optest

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func TestHost(t *testing.T) {
	for _, threads := range []int{1, 2} {
		host := tensor.NewHost(threads)
		t.Run(host.Name(), func(t *testing.T) { Run(t, host) })
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}
}
