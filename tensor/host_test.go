package tensor

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// placed returns a buffer at the given offset.
func placed(name string, arena Arena, dtype DType, elements, offset int) *Buffer {
	b := NewBuffer(name, arena, dtype, elements)
	b.Offset = offset
	return b
}

// tally is a workload of two launches: a sum over the data into scratch memory, by way of the
// workspace and the tiles' private memory; then n <- n + sum + n's own index.
type tally struct {
	data, n, sum *Buffer
	schedule     Workload
}

const tallyTiles = 5

func newTally(chains int) *tally {
	s := &tally{
		data: placed("data", Shared, Int32, tallyTiles*100, 0),
		n:    placed("n", Chain, Float64, 33, Alignment),
		sum:  placed("sum", Scratch, Float64, 1, 0),
	}
	host := HostKernel{Workspace: 8 * tallyTiles, Private: 8, Phases: []Phase{
		{Tiles: tallyTiles, Run: func(a *Args, tile int) {
			private := Private[float64](a)
			private[0] = 0
			for _, v := range Slice[int32](a, 1)[tile*100 : (tile+1)*100] {
				private[0] += float64(v)
			}
			Workspace[float64](a)[tile] = private[0]
		}},
		{Tiles: 1, Run: func(a *Args, _ int) {
			sum := Slice[float64](a, 0)
			sum[0] = 0
			for _, v := range Workspace[float64](a)[:tallyTiles] {
				sum[0] += v
			}
		}},
	}}
	add := Rows(33, 1, func(a *Args, lo, hi int) {
		n, sum := Slice[float64](a, 0), Slice[float64](a, 1)
		for i := lo; i < hi; i++ {
			n[i] += sum[0] + float64(i)
		}
	})
	s.schedule = Workload{
		Launches: []Launch{
			{Kernel: "sum_i32", Label: "sum", Arguments: []Argument{Out(s.sum), In(s.data)}, Host: host},
			{Kernel: "add_f64", Label: "add", Arguments: []Argument{InOut(s.n), In(s.sum)}, Host: add},
		},
		Bytes:  [arenas]int{Shared: Align(s.data.Bytes()), Chain: Alignment + Align(s.n.Bytes()), Scratch: Alignment},
		Chains: chains,
	}
	return s
}

func TestHostRunsChains(t *testing.T) {
	for _, threads := range []int{1, 2, 3} {
		for _, chains := range []int{1, 2, 3, 7, 31} {
			host := NewHost(threads)
			s := newTally(chains)
			r, err := host.Load(s.schedule)
			if err != nil {
				t.Fatal(err)
			}
			data := make([]int32, s.data.Elements)
			total := 0.0
			for i := range data {
				data[i] = int32(i % 7)
				total += float64(data[i])
			}
			if err := r.Write(s.data, 0, 0, Bytes(data)); err != nil {
				t.Fatal(err)
			}
			for chain := range chains {
				if err := r.Write(s.n, chain, 2, Bytes([]float64{float64(1000 * chain)})); err != nil {
					t.Fatal(err)
				}
			}
			for steps := 1; steps <= 2; steps++ {
				if err := r.Run(steps); err != nil {
					t.Fatal(err)
				}
			}
			for chain := range chains {
				n := make([]float64, 33)
				if err := r.Read(s.n, chain, 0, Bytes(n)); err != nil {
					t.Fatal(err)
				}
				for i, v := range n {
					want := 3 * (total + float64(i))
					if i == 2 {
						want += float64(1000 * chain)
					}
					if v != want {
						t.Errorf("%d threads, %d chains: n[%d] of chain %d is %v, want %v", threads, chains, i, chain, v, want)
					}
				}
			}
			closeAll(t, r, host)
		}
	}
}

func closeAll(t *testing.T, things ...interface{ Close() error }) {
	t.Helper()
	for _, thing := range things {
		if err := thing.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestHostStep(t *testing.T) {
	host := NewHost(2)
	s := newTally(3)
	r, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(s.data, 0, 0, Bytes([]int32{4, 5})); err != nil {
		t.Fatal(err)
	}
	var visited []int
	err = r.Step(1, func(launch int) error {
		visited = append(visited, launch)
		sum := make([]float64, 1)
		if err := r.Read(s.sum, 1, 0, Bytes(sum)); err != nil {
			return err
		}
		if sum[0] != 9 {
			t.Errorf("after launch %d the sum is %v, want 9", launch, sum[0])
		}
		return nil
	})
	if err != nil || len(visited) != 2 || visited[0] != 0 || visited[1] != 1 {
		t.Errorf("visits %v, error %v", visited, err)
	}
	for chain, want := range []float64{0, 9, 0} {
		n := make([]float64, 1)
		if err := r.Read(s.n, chain, 0, Bytes(n)); err != nil || n[0] != want {
			t.Errorf("n[0] of chain %d is %v, want %v (%v)", chain, n[0], want, err)
		}
	}
	stop := errors.New("stop")
	count := 0
	if err := r.Step(0, func(int) error { count++; return stop }); err != stop || count != 1 {
		t.Errorf("a visit that fails: error %v after %d visits", err, count)
	}
	closeAll(t, r, host)
}

// wantError checks that the text of err contains part.
func wantError(t *testing.T, what string, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: got error %v, want one with %q", what, err, part)
	}
}

func TestHostErrors(t *testing.T) {
	host := NewHost(2)
	s := newTally(2)
	none := s.schedule
	none.Chains = 0
	_, err := host.Load(none)
	wantError(t, "no chains", err, "Chains must be at least 1, got 0")
	for _, offset := range []int{-1, 1, 32, 2 * Alignment} {
		bad := newTally(1)
		bad.n.Offset = offset
		_, err := host.Load(bad.schedule)
		wantError(t, "a buffer at a wrong offset", err, "launch add_f64 (add): argument 0, n chain")
	}
	r, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 8)
	visit := func(int) error { return nil }
	for _, test := range []struct {
		what string
		err  error
		part string
	}{
		{"read of chain 2", r.Read(s.n, 2, 0, word), "chain must be in [0, 2), got 2"},
		{"read of chain -1", r.Read(s.n, -1, 0, word), "chain must be in [0, 2), got -1"},
		{"read beyond the end", r.Read(s.n, 0, 33, word), "outside n chain+64 float64[33], which has 264 bytes"},
		{"read far beyond the end", r.Read(s.n, 0, 1<<61, word), "outside n chain"},
		{"read before the start", r.Read(s.n, 0, -1, word), "outside n chain"},
		{"write beyond the end", r.Write(s.n, 0, 32, make([]byte, 9)), "outside n chain"},
		{"step of chain 2", r.Step(2, visit), "Step: chain must be in [0, 2), got 2"},
		{"step of chain -1", r.Step(-1, visit), "Step: chain must be in [0, 2), got -1"},
	} {
		wantError(t, test.what, test.err, test.part)
	}
	if err := r.Read(s.n, 0, 33, nil); err != nil {
		t.Errorf("reading nothing, at the end: %v", err)
	}
	closeAll(t, r)
	wantError(t, "run after close", r.Run(1), "after Close")
	wantError(t, "step after close", r.Step(0, visit), "Step called after Close")
	wantError(t, "read after close", r.Read(s.n, 0, 0, word), "after Close")
	wantError(t, "write after close", r.Write(s.n, 0, 0, word), "after Close")

	left, err := host.Load(s.schedule)
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, host, host) // the second Close does nothing
	wantError(t, "load on a closed device", second(host.Load(s.schedule)), "after Close")
	wantError(t, "run on a closed device", left.Run(1), "after Close")
	wantError(t, "step on a closed device", left.Step(0, visit), "Step called after Close")
	closeAll(t, left)
}

func second(_ Runner, err error) error { return err }

func TestHostMemoryStartsZeroedAndAligned(t *testing.T) {
	host := NewHost(1)
	r, err := host.Load(newTally(2).schedule)
	if err != nil {
		t.Fatal(err)
	}
	for arena := range arenas {
		whole := placed("whole", arena, Uint8, Alignment, 0)
		got := bytes.Repeat([]byte{1}, Alignment)
		if err := r.Read(whole, 1, 0, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, make([]byte, Alignment)) {
			t.Errorf("the %v arena starts as %v", arena, got)
		}
	}
	closeAll(t, r, host)
}

func TestHostDoesNotAllocate(t *testing.T) {
	for _, threads := range []int{1, 2} {
		for _, chains := range []int{1, 2, 3} {
			host := NewHost(threads)
			r, err := host.Load(newTally(chains).schedule)
			if err != nil {
				t.Fatal(err)
			}
			failed := error(nil)
			allocations := testing.AllocsPerRun(5, func() {
				if err := r.Run(2); err != nil {
					failed = err
				}
			})
			if failed != nil || allocations > 0 {
				t.Errorf("%d threads, %d chains: %v allocations, error %v", threads, chains, allocations, failed)
			}
			closeAll(t, r, host)
		}
	}
}

func TestHostName(t *testing.T) {
	host := NewHost(3)
	defer host.Close()
	if name := host.Name(); !strings.Contains(name, "cpu") || !strings.Contains(name, "3 threads") {
		t.Errorf("name is %q", name)
	}
	all := NewHost(0)
	defer all.Close()
	if all.pool.workers < 1 {
		t.Errorf("%d threads by default", all.pool.workers)
	}
}

// TestTooManyTiles: a launch with no tiles, or with more than a round of the pool can have, is an
// error.
func TestTooManyTiles(t *testing.T) {
	host := NewHost(2)
	defer host.Close()
	for _, tiles := range []int{0, -1, maxItems + 1} {
		w := newTally(1).schedule
		w.Launches = append([]Launch{}, w.Launches...)
		w.Launches[1].Host.Phases = []Phase{{Tiles: tiles, Run: func(*Args, int) {}}}
		if _, err := host.Load(w); err == nil || !strings.Contains(err.Error(), "add_f64 (add): tiles must be 1 to") {
			t.Errorf("%d tiles: %v", tiles, err)
		}
	}
}
