package tensor

import (
	"runtime"
	"testing"

	"github.com/pkg/errors"
)

func TestBytes(t *testing.T) {
	owner := new(int)
	defer runtime.KeepAlive(owner) // m would be freed without it
	m := newMemory(owner)
	defer m.free()
	for n := range 200 {
		if block := m.bytes(n); len(block) != n || cap(block) != n || addressOf(block)%Alignment != 0 && n > 0 {
			t.Errorf("%d bytes: length %d, capacity %d, address %#x", n, len(block), cap(block), addressOf(block))
		}
	}
	for _, n := range []int{hugePageBytes, 2*hugePageBytes + 5} {
		block := m.bytes(n)
		if len(block) != n || cap(block) != n || addressOf(block)%hugePageBytes != 0 {
			t.Errorf("%d bytes: length %d, capacity %d, address %#x", n, len(block), cap(block), addressOf(block))
		}
		for i, b := range block {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, n, b)
			}
		}
	}
	if err := m.err("a test"); err != nil {
		t.Error(err)
	}
}

// The slices of one allocation do not overlap.
func TestSlices(t *testing.T) {
	owner := new(int)
	defer runtime.KeepAlive(owner) // m would be freed without it
	m := newMemory(owner)
	defer m.free()
	for _, n := range []int{0, 5, Alignment, hugePageBytes - 1} {
		many := m.slices(3, n)
		for i, part := range many {
			if len(part) != n || cap(part) != n || n > 0 && addressOf(part)%Alignment != 0 {
				t.Fatalf("part %d of %d bytes: length %d, capacity %d, address %#x", i, n, len(part), cap(part), addressOf(part))
			}
			for j := range part {
				part[j]++
			}
		}
		for i, part := range many {
			for j, b := range part {
				if b != 1 {
					t.Fatalf("byte %d of part %d is %d: parts share memory", j, i, b)
				}
			}
		}
	}
}

// Load returns OutOfMemory, instead of ending the program, if the system has too little memory.
func TestOutOfMemory(t *testing.T) {
	if !isMapped {
		t.Skip("the arenas are in Go's heap")
	}
	host := NewHost(2)
	defer host.Close()
	_, err := host.Load(Workload{Bytes: [arenas]int{Shared: 100, Chain: 1 << 50}, Chains: 4, Keeps: true})
	var out *OutOfMemory
	if !errors.As(err, &out) || out.Bytes != 1<<52 {
		t.Errorf("Load of 4 PiB: %v, want OutOfMemory", err)
	}
}

// The memory of a runner that becomes unreachable without Close is freed.
func TestUnclosedRunner(t *testing.T) {
	if !isMapped {
		t.Skip("the arenas are in Go's heap")
	}
	host := NewHost(1)
	defer host.Close()
	load := func() *[][]byte {
		r, err := host.Load(Workload{Bytes: [arenas]int{Shared: 3 * hugePageBytes}, Chains: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.(*hostRunner).memory.mapped
	}
	mapped := load()
	for range 100 {
		if runtime.GC(); len(*mapped) == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Error("a runner that is unreachable keeps its memory")
}

func jointWorkload(chains, bytes int) Workload {
	s, _ := newJointTally(chains, 4, bytes)
	return s.schedule
}

// Size returns the sum of the blocks that Load allocates.
func TestSize(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		host := NewHost(threads)
		for _, w := range []Workload{
			{Bytes: [arenas]int{Shared: 1000, Chain: 77, Scratch: 5000}, Chains: 1},
			{Bytes: [arenas]int{Shared: 1000, Chain: 77, Scratch: 5000}, Chains: 5, Keeps: true},
			newScaled(3).schedule,
			jointWorkload(9, 0),
			jointWorkload(4, lockstepBytes),
		} {
			r, err := host.Load(w)
			if err != nil {
				t.Fatal(err)
			}
			h, sum := r.(*hostRunner), 0
			for _, all := range [][][]byte{{h.shared}, h.chains, h.snapshot, h.preparedArgs, h.scratch, h.workspace, h.private, h.local} {
				for _, block := range all {
					sum += Align(len(block))
				}
			}
			if got, err := host.Size(w); err != nil || got.Host != sum || got.Device != 0 {
				t.Errorf("%d threads, %d chains: Size = %+v, %v, want %d bytes", threads, w.Chains, got, err, sum)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		host.Close()
	}
	if got, err := SizeOn(struct{ Device }{}, Workload{Bytes: [arenas]int{10, 20, 30}, Chains: 3, Keeps: true}); err != nil || got.Host != 10+6*20+30 {
		t.Errorf("SizeOn another device = %+v, %v, want %d", got, err, 10+6*20+30)
	}
}
