//go:build linux

package cuda

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// sweep reads all chains.
func sweep(t *testing.T, s *toy, r tensor.Runner) [][]byte {
	t.Helper()
	all, err := s.state(r)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// begun loads a toy on a device and fills its memory.
func begun(t *testing.T, s *toy, device tensor.Device) tensor.Runner {
	t.Helper()
	r, err := device.Load(s.Workload)
	if err == nil {
		err = s.fill(r, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReadAhead: after the first windows of a run and reads of all chains, a window waits once for
// each GPU, however many chains there are. The values read are always the present ones, whatever
// changes the memory in between.
func TestReadAhead(t *testing.T) {
	noSwitches(t)
	host := tensor.NewHost(1)
	defer host.Close()
	for _, gpus := range [][]int{{0}, {0, 2}} {
		for _, chains := range []int{2, 5, 64} {
			d := newFakeDriver(t)
			device := mustOpenFake(t, d, Options{GPUs: gpus})
			s := newToy(chains)
			r := begun(t, s, device)
			other := newToy(chains)
			want := begun(t, other, host)
			step := func(steps int) {
				t.Helper()
				if err := cmp.Or(r.Run(steps), want.Run(steps)); err != nil {
					t.Fatal(err)
				}
			}
			for window := range 4 {
				before := d.waits
				step(3)
				got := sweep(t, s, r)
				if waits := d.waits - before; window > 1 && waits != len(gpus) {
					t.Errorf("%d chains on GPUs %v: window %d waits %d times", chains, gpus, window, waits)
				}
				if !same(got, sweep(t, other, want)) {
					t.Errorf("%d chains on GPUs %v: window %d reads what the host does not compute", chains, gpus, window)
				}
			}
			whole := tensor.NewBuffer("chain", tensor.Chain, tensor.Uint8, s.Bytes[tensor.Chain])
			whole.Offset = 0
			raw := make([]byte, whole.Bytes())
			if n := testing.AllocsPerRun(5, func() { r.Read(whole, 0, 0, raw) }); n > 0 {
				t.Errorf("a read that was made ahead allocates %v times", n)
			}
			checkChanges(t, s, r)
			step(1)
			step(1) // nothing was read after the preceding run, so the readback ends
			if d.mu.Lock(); len(d.pinned) != len(gpus) {
				t.Errorf("%d pieces of pinned memory, want the staging of each GPU", len(d.pinned))
			}
			d.mu.Unlock()
			step(2)
			sweep(t, s, r)
			if err := cmp.Or(r.Close(), want.Close(), device.Close()); err != nil || d.left() != "" {
				t.Errorf("left behind: %s (%v)", d.left(), err)
			}
		}
	}
}

// checkChanges: the next read sees whatever has changed memory.
func checkChanges(t *testing.T, s *toy, r tensor.Runner) {
	t.Helper()
	for name, change := range map[string]func() error{
		"write":  func() error { return r.Write(s.x, 1, 0, bytes.Repeat([]byte{1}, s.x.Bytes())) },
		"step":   func() error { return r.Step(1, func(int) error { return nil }) },
		"return": func() error { return r.Return() },
	} {
		if err := r.Keep(); err != nil {
			t.Fatal(err)
		}
		if name == "return" {
			if err := r.Run(2); err != nil {
				t.Fatal(err)
			}
		}
		before := sweep(t, s, r)[1]
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(sweep(t, s, r)[1], before) {
			t.Errorf("a read after a %s finds what was there before", name)
		}
	}
}
