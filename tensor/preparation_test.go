package tensor

import (
	"sync/atomic"
	"testing"
)

// scaled is a workload of two launches: sum <- sum + 10 w, where the first phase of the launch
// prepares 10 w in the workspace, and a launch that spoils its own workspace.
type scaled struct {
	w, sum, other *Buffer
	prepared      atomic.Int64 // how often w was prepared
	schedule      Workload
}

func newScaled(chains int) *scaled {
	s := &scaled{
		w: placed("w", Chain, Float64, 1, 0), sum: placed("sum", Chain, Float64, 1, Alignment), other: placed("other", Chain, Float64, 1, 2*Alignment),
	}
	host := HostKernel{Workspace: 8, Preparation: Preparation{Phases: 1, Argument: 1}, Phases: []Phase{
		{Tiles: 1, Run: func(a *Args, _ int) {
			Workspace[float64](a)[0] = 10 * Slice[float64](a, 1)[0]
			s.prepared.Add(1)
		}},
		{Tiles: 1, Run: func(a *Args, _ int) { Slice[float64](a, 0)[0] += Workspace[float64](a)[0] }},
	}}
	spoil := HostKernel{Workspace: 64, Phases: []Phase{{Tiles: 1, Run: func(a *Args, _ int) {
		for i := range Workspace[float64](a)[:8] {
			Workspace[float64](a)[i] = -1
		}
	}}}}
	s.schedule = Workload{
		Launches: []Launch{
			{Kernel: "add", Arguments: []Argument{InOut(s.sum), In(s.w)}, Host: host},
			{Kernel: "spoil", Arguments: []Argument{InOut(s.other)}, Host: spoil},
		},
		Bytes:  [arenas]int{Chain: 3 * Alignment},
		Chains: chains,
		Keeps:  true,
	}
	return s
}

// An argument is prepared once for each chain, and again after it was written.
func TestPreparation(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		for _, chains := range []int{1, 2, 5} {
			host, s := NewHost(threads), newScaled(chains)
			r, err := host.Load(s.schedule)
			if err != nil {
				t.Fatal(err)
			}
			want, w := make([]float64, chains), make([]float64, chains)
			write := func(b *Buffer, chain int, v float64) {
				t.Helper()
				if err := r.Write(b, chain, 0, Bytes([]float64{v})); err != nil {
					t.Fatal(err)
				}
			}
			run := func(steps, prepared int) {
				t.Helper()
				s.prepared.Store(0)
				if err := r.Run(steps); err != nil {
					t.Fatal(err)
				}
				for chain := range chains {
					want[chain] += float64(steps) * 10 * w[chain]
					got := make([]float64, 1)
					if err := r.Read(s.sum, chain, 0, Bytes(got)); err != nil || got[0] != want[chain] {
						t.Errorf("%d threads: chain %d of %d is at %v, %v, want %v", threads, chain, chains, got[0], err, want[chain])
					}
				}
				if n := int(s.prepared.Load()); n != prepared {
					t.Errorf("%d threads, %d chains: prepared %d times, want %d", threads, chains, n, prepared)
				}
			}
			for chain := range chains {
				w[chain] = float64(chain + 1)
				write(s.w, chain, w[chain])
			}
			run(3, chains)
			run(2, 0)
			write(s.other, 0, 5)
			run(1, 0)
			w[chains-1] = 100
			write(s.w, chains-1, 100)
			run(2, 1)
			if err := r.Keep(); err != nil {
				t.Fatal(err)
			}
			kept := append([]float64(nil), want...)
			w[0] += 7
			write(s.w, 0, w[0])
			run(1, 1)
			if err := r.Return(); err != nil {
				t.Fatal(err)
			}
			want, w[0] = kept, w[0]-7
			run(2, chains)
			if err := r.Step(0, func(int) error { return nil }); err != nil {
				t.Fatal(err)
			}
			want[0] += 10 * w[0]
			s.prepared.Store(0)
			run(1, 0)
			closeAll(t, r, host)
		}
	}
}

// An argument is prepared in every step if a launch writes it.
func TestPreparationOfWritten(t *testing.T) {
	host, s := NewHost(2), newScaled(3)
	s.schedule.Launches[1].Arguments = append(s.schedule.Launches[1].Arguments, Out(s.w))
	r, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, r, host)
	if err := r.Run(4); err != nil || s.prepared.Load() != 12 {
		t.Errorf("prepared %d times for 3 chains in 4 steps, %v", s.prepared.Load(), err)
	}
}

// Chains that share an argument prepare it once.
func TestPreparationOfShared(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		for _, chains := range []int{1, 2, 5} {
			host, s := NewHost(threads), newScaled(chains)
			s.w.Arena = Shared
			s.schedule.Bytes[Shared] = Alignment
			r, err := host.Load(s.schedule)
			if err != nil {
				t.Fatal(err)
			}
			want := 0.0
			for step, w := range []float64{3, 4} {
				if err := r.Write(s.w, 0, 0, Bytes([]float64{w})); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					want += 2 * 10 * w
					if err := r.Run(2); err != nil {
						t.Fatal(err)
					}
				}
				for chain := range chains {
					got := make([]float64, 1)
					if err := r.Read(s.sum, chain, 0, Bytes(got)); err != nil || got[0] != want {
						t.Errorf("%d threads: chain %d of %d is at %v, %v, want %v", threads, chain, chains, got[0], err, want)
					}
				}
				if n := int(s.prepared.Load()); n != step+1 {
					t.Errorf("%d threads, %d chains: prepared %d times after %d writes", threads, chains, n, step+1)
				}
			}
			closeAll(t, r, host)
		}
	}
}

// A write to a chain that does not exist is an error, also to a prepared argument.
func TestPreparationOfNoChain(t *testing.T) {
	host, s := NewHost(1), newScaled(1)
	r, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, r, host)
	if err := r.Write(s.w, 1, 0, Bytes([]float64{1})); err == nil {
		t.Error("no error")
	}
}

// Arguments in scratch memory are not kept, nor those beyond maxPrepared.
func TestPlanPreparations(t *testing.T) {
	for _, test := range []struct {
		arena                Arena
		chains, bytes, joint int
		kept                 bool
	}{
		{Chain, 1, 100, 0, true}, {Chain, 3, 100, 0, true}, {Shared, 1, 100, 0, true}, {Shared, 2, 100, 0, true}, {Scratch, 1, 100, 0, false},
		{Chain, 1, maxPrepared, 0, true}, {Chain, 1, maxPrepared + 1, 0, false}, {Chain, 4, maxPrepared / 4, 0, true}, {Chain, 5, maxPrepared / 4, 0, false},
		{Shared, 5, maxPrepared, 0, true}, {Chain, 3, 100, 3, false},
	} {
		s := newScaled(test.chains).schedule
		s.Launches[0].Arguments[1].Buffer.Arena = test.arena
		s.Launches[0].Host.Workspace, s.Launches[0].Host.Joint.Chains = test.bytes, test.joint
		p, want := planPreparations(s), preparations{}.bytes
		if test.kept {
			want[test.arena] = Align(test.bytes)
		}
		if kept := p.offsets[0] == 0; kept != test.kept || p.bytes != want || !kept && p.offsets[0] != -1 || p.offsets[1] != -1 {
			t.Errorf("%+v: %+v", test, p)
		}
	}
}
