//go:build linux

package cuda

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestSize: Size returns the memory that Load allocates, except for the driver's rounding of
// allocations.
func TestSize(t *testing.T) {
	for _, gpus := range [][]int{{0}, {0, 1}} {
		for _, keeps := range []bool{false, true} {
			d := newFakeDriver(t)
			device := mustOpenFake(t, d, Options{GPUs: gpus})
			w := newToy(3).Workload
			w.Keeps = keeps
			size, err := tensor.SizeOn(device, w)
			if err != nil || size.Host != 0 {
				t.Fatalf("Size = %+v, %v", size, err)
			}
			before, err := device.Free()
			if err != nil {
				t.Fatal(err)
			}
			r, err := device.Load(w)
			if err != nil {
				t.Fatal(err)
			}
			after, err := device.Free()
			if err != nil {
				t.Fatal(err)
			}
			const arenas = 4 // and the snapshot
			if taken := before - after; taken < size.Device || taken > size.Device+len(gpus)*arenas*allocationGranularity {
				t.Errorf("%d GPUs, keeps %v: Load took %d bytes, Size is %d", len(gpus), keeps, taken, size.Device)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
