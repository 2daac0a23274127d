package tensor

import (
	"sync/atomic"
	"testing"
)

// newJointTally returns a tally whose first launch computes at most together chains at once, and
// the number of chains computed in this way. The second launch needs each chain's own scratch
// memory.
func newJointTally(chains, together, bytes int) (*tally, *atomic.Int64) {
	s, computed := newTally(chains), new(atomic.Int64)
	s.schedule.Launches[0].Host.Joint = Joint{Chains: together, Bytes: bytes, Kernel: func(chains int) HostKernel {
		if chains > together {
			panic("more chains than are worthwhile")
		}
		return HostKernel{Workspace: 8 * tallyTiles, Phases: []Phase{
			{Tiles: tallyTiles, Run: func(a *Args, tile int) {
				sum := 0.0
				for _, v := range SliceOf[int32](a, 0, 1)[tile*100 : (tile+1)*100] {
					sum += float64(v)
				}
				Workspace[float64](a)[tile] = sum
			}},
			{Tiles: chains, Run: func(a *Args, chain int) {
				total := 0.0
				for _, v := range Workspace[float64](a)[:tallyTiles] {
					total += v
				}
				SliceOf[float64](a, chain, 0)[0] = total
				computed.Add(1)
			}},
		}}
	}}
	return s, computed
}

func TestChainsTogether(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		for _, chains := range []int{1, 2, 3, 4, 7, 31, 64} {
			for _, bytes := range []int{0, lockstepBytes} {
				host := NewHost(threads)
				apart, _ := newJointTally(chains, 0, bytes)
				joint, computed := newJointTally(chains, 4, bytes)
				want, got := runTally(t, host, apart), runTally(t, host, joint)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%d threads, %d chains: number %d is %v, chain by chain %v", threads, chains, i, got[i], want[i])
					}
				}
				single := 0 // chains that are groups of their own
				for _, g := range host.layout(joint.schedule).groups {
					if g.end-g.first == 1 {
						single++
					}
				}
				if n := int(computed.Load()); n != 3*(chains-single) {
					t.Errorf("%d threads, %d chains: %d were computed together in three steps, %d groups are of one", threads, chains, n, single)
				}
				if together := bytes > 0 && chains > 1 && chains <= 4; together && single > 0 {
					t.Errorf("%d threads, %d chains: %d groups of one, want one group", threads, chains, single)
				}
				closeAll(t, host)
			}
		}
	}
}

// runTally runs three steps and returns the numbers of all chains.
func runTally(t *testing.T, host *Host, s *tally) (all []float64) {
	t.Helper()
	r, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, r)
	data := make([]int32, s.data.Elements)
	for i := range data {
		data[i] = int32(i*i%11 - 3)
	}
	if err := r.Write(s.data, 0, 0, Bytes(data)); err != nil {
		t.Fatal(err)
	}
	for chain := range s.schedule.Chains {
		if err := r.Write(s.n, chain, 1, Bytes([]float64{float64(100 * chain)})); err != nil {
			t.Fatal(err)
		}
	}
	for _, steps := range []int{1, 2} {
		if err := r.Run(steps); err != nil {
			t.Fatal(err)
		}
	}
	for chain := range s.schedule.Chains {
		n := make([]float64, s.n.Elements)
		if err := r.Read(s.n, chain, 0, Bytes(n)); err != nil {
			t.Fatal(err)
		}
		all = append(all, n...)
	}
	return all
}

// Groups cover all chains once and differ by at most one chain. Each worker has the same number.
func TestGroupChains(t *testing.T) {
	for _, test := range []struct{ together, chains, workers, groups int }{
		{0, 5, 2, 5}, {1, 5, 1, 5}, {4, 1, 1, 1}, {4, 4, 1, 1}, {4, 5, 1, 2}, {4, 4, 2, 2}, {4, 9, 2, 4}, {4, 3, 3, 3}, {10, 100, 2, 10}, {32, 1000, 16, 32},
	} {
		kernel := func(int) HostKernel { return HostKernel{Phases: make([]Phase, 1)} }
		launches := []Launch{{}, {Host: HostKernel{Joint: Joint{Chains: test.together, Kernel: kernel}}}}
		groups := groupChains(launches, test.chains, test.workers)
		if len(groups) != test.groups {
			t.Errorf("%+v: %d groups", test, len(groups))
		}
		next := 0
		for _, g := range groups {
			size := g.end - g.first
			if g.first != next || size < test.chains/len(groups) || size > test.chains/len(groups)+1 || size > max(1, test.together) {
				t.Errorf("%+v: group [%d, %d) after %d", test, g.first, g.end, next)
			}
			if joint := g.kernel(1) != nil; joint != (size > 1) || g.kernel(0) != nil {
				t.Errorf("%+v: group of %d is computed together: %v", test, size, joint)
			}
			next = g.end
		}
		if next != test.chains {
			t.Errorf("%+v: groups end at %d", test, next)
		}
	}
}
