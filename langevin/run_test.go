package langevin_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// fuse is a loss without a slope, which is NaN at step At of chain Chain: theta of any shape,
// header -> a scalar.
type fuse struct{ At, Chain int }

func (fuse) Name() string                               { return "fuse" }
func (fuse) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (f fuse) Lower(l *graph.Lowering) {
	l.Emit("test", tensor.Threads(1), tensor.Single(func(a *tensor.Args) {
		header, loss := tensor.Slice[uint64](a, 2), tensor.Slice[float32](a, 0)
		loss[0] = 0
		if header[graph.HeaderStep] == uint64(f.At) && header[graph.HeaderChain] == uint64(f.Chain) {
			loss[0] = float32(math.NaN())
		}
	}), l.Out(), l.In(0), l.In(1))
}

func (f fuse) Gradients(_ *graph.Builder, in []*graph.Node, _, _ *graph.Node) []*graph.Node {
	return []*graph.Node{in[0], nil} // the slope of a potential theta^2/2
}

// never is a step that no test reaches.
const never = 1 << 30

func fuseSession(t *testing.T, f fuse, chains int) *graph.Session {
	t.Helper()
	b := graph.New(tensor.Float32)
	loss := b.Apply(f, b.Parameter(trial.ParameterName, nil, 5), b.Header())
	if err := langevin.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 10}, loss, []float64{0.01}, []float64{1}); err != nil {
		t.Fatal(err)
	}
	b.Record("loss", loss)
	return trial.Load(t, b, graph.LoadOptions{Seed: 1, Chains: chains}, 1)
}

// TestRunKeepsSamplesBeforeNaN: a loss that breaks in the middle of a run stops it with an error
// that says where; the samples so far are in the store.
func TestRunKeepsSamplesBeforeNaN(t *testing.T) {
	session := fuseSession(t, fuse{At: 16, Chain: 1}, 3)
	store, _ := trial.NewStore(t)
	plan := langevin.Plan{Steps: 40, BurnIn: 4, Thinning: 5}
	err := plan.Run(context.Background(), session, 3, func(p langevin.Window) error {
		for chain := 0; p.Sample && chain < session.Chains(); chain++ {
			sample, err := samples.FromSession(session, chain, 1)
			if err == nil {
				err = store.Add(sample)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	var fault *graph.NotFinite
	if !errors.As(err, &fault) {
		t.Fatalf("error %v, want a *graph.NotFinite", err)
	}
	if fault.Step != 16 || fault.Chain != 1 || fault.Label != "fuse" {
		t.Errorf("fault %+v, want step 16, chain 1, fuse", *fault)
	}
	if got := session.Steps(); got != 14 {
		t.Errorf("the session stands after step %d, want 14, where the window began", got)
	}
	files, err := store.Files()
	if err != nil || len(files) != 2*3 {
		t.Fatalf("%d files (%v), want those of 3 chains after steps 9 and 14", len(files), err)
	}
	for i, file := range files {
		sample, err := samples.ReadSample(file)
		if err != nil || sample.Chain != i/2 || sample.Step != 9+5*(i%2) {
			t.Errorf("%s: chain %d, step %d (%v)", file, sample.Chain, sample.Step, err)
		}
	}
}

// TestRunPaced: a run in parts has the windows of one that is not, finds the same fault, and stops
// within a window when its context ends, at the window's beginning.
func TestRunPaced(t *testing.T) {
	plan, background := langevin.Plan{Steps: 40, BurnIn: 4, Thinning: 5}, context.Background()
	parts := func(int, int) (int, error) { return 2, nil }
	var windows [2][]langevin.Window
	for i, pace := range []graph.Pace{nil, parts} {
		session := fuseSession(t, fuse{At: 16, Chain: 1}, 3)
		err := plan.RunPaced(background, session, 3, pace, func(p langevin.Window) error {
			windows[i] = append(windows[i], p)
			return nil
		})
		var fault *graph.NotFinite
		if !errors.As(err, &fault) || fault.Step != 16 || fault.Chain != 1 || session.Steps() != 14 {
			t.Errorf("error %v at step %d, want one of step 16, chain 1, and the session at step 14", err, session.Steps())
		}
	}
	if !slices.Equal(windows[0], windows[1]) {
		t.Errorf("windows %+v in parts, %+v without", windows[1], windows[0])
	}
	ctx, stop := context.WithCancel(background)
	session, last := fuseSession(t, fuse{At: never}, 3), langevin.Window{}
	err := plan.RunPaced(ctx, session, 3, func(made, left int) (int, error) {
		if session.Steps() == 9 && made == 2 {
			stop()
		}
		return 1, ctx.Err()
	}, func(p langevin.Window) error {
		last = p
		return nil
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped after 9 of 40 steps") || session.Steps() != 9 || last.To != 9 {
		t.Errorf("error %v at step %d after the window %+v, want a stop after 9 steps", err, session.Steps(), last)
	}
}

func TestRunObserves(t *testing.T) {
	session := fuseSession(t, fuse{At: never}, 1)
	plan := langevin.Plan{Steps: 20, BurnIn: 3, Thinning: 6}
	var got []langevin.Window
	observe := func(p langevin.Window) error {
		got = append(got, p)
		return nil
	}
	if err := plan.Run(context.Background(), session, 5, observe); err != nil {
		t.Fatal(err)
	}
	want := []langevin.Window{{From: 0, To: 5}, {From: 5, To: 9, Sample: true}, {From: 9, To: 14}, {From: 14, To: 15, Sample: true}, {From: 15, To: 20}}
	if len(got) != len(want) {
		t.Fatalf("observed %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("window %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	// A plan that is over makes no more steps.
	if err := plan.Run(context.Background(), session, 5, observe); err != nil || len(got) != len(want) || session.Steps() != 20 {
		t.Errorf("after the end: %v, %d windows, %d steps", err, len(got), session.Steps())
	}
}

func TestRunStops(t *testing.T) {
	session := fuseSession(t, fuse{At: never}, 1)
	plan := langevin.Plan{Steps: 50, Thinning: 10}
	ctx, cancel := context.WithCancel(context.Background())
	err := plan.Run(ctx, session, 7, func(p langevin.Window) error {
		if p.To == 20 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || session.Steps() != 20 {
		t.Errorf("error %v after %d steps, want the context's after 20", err, session.Steps())
	}
	if err := plan.Run(ctx, session, 7, func(langevin.Window) error { return nil }); !errors.Is(err, context.Canceled) || session.Steps() != 20 {
		t.Errorf("error %v after %d steps, want the context's at once", err, session.Steps())
	}
	failed := errors.New("observer's")
	if err := plan.Run(context.Background(), session, 7, func(langevin.Window) error { return failed }); !errors.Is(err, failed) || session.Steps() != 27 {
		t.Errorf("error %v after %d steps, want the observer's after 27", err, session.Steps())
	}
}

func TestRunRefuses(t *testing.T) {
	session := fuseSession(t, fuse{At: never}, 1)
	ignore := func(langevin.Window) error { return nil }
	for _, c := range []struct {
		plan langevin.Plan
		most int
	}{
		{langevin.Plan{}, 1},
		{langevin.Plan{Steps: 10, Thinning: 1}, 0},
		{langevin.Plan{Steps: 10, Thinning: 1}, graph.MetricRows + 1},
	} {
		if err := c.plan.Run(context.Background(), session, c.most, ignore); err == nil || session.Steps() != 0 {
			t.Errorf("%+v, windows of %d: error %v after %d steps", c.plan, c.most, err, session.Steps())
		}
	}
}
