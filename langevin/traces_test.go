package langevin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// Collect returns what an observer of Run reads at the samples, of parameters and outputs of either
// float type.
func TestCollect(t *testing.T) {
	const chains = 3
	build := func() *graph.Session {
		b := graph.New(tensor.Float64)
		w := b.Parameter("w", nil, 2)
		narrow := b.Within(tensor.Float32)
		b.Output("narrow", b.Apply(op.Scale{Factor: 2}, b.State("s", nil, 3)))
		narrow()
		loss := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, w, b.Apply(op.Add{}, w, b.Parameter("w.position", nil, 2)))) // no draws of w
		if err := langevin.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 10, Prior: langevin.Flat()}, loss, []float64{0.01}, []float64{1}); err != nil {
			t.Fatal(err)
		}
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		host := tensor.NewHost(2)
		t.Cleanup(func() { host.Close() })
		s, err := program.Load(host, graph.LoadOptions{Seed: 4, Chains: chains})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		for chain := range chains {
			if err := graph.Write(s, "s", chain, 0, []float32{1, 2, float32(chain)}); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	plan := langevin.Plan{Steps: 300, BurnIn: 50, Thinning: 7}
	s := build()
	var want [chains][][]float64
	if err := plan.Run(t.Context(), s, 20, func(w langevin.Window) error {
		for chain := 0; w.Sample && chain < chains; chain++ {
			values := make([]float64, 2)
			if err := graph.Read(s, "w", chain, 0, values); err != nil {
				return err
			}
			want[chain] = append(want[chain], values)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	traces, err := plan.Collect(t.Context(), build(), []string{"w", "narrow"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(traces.Names(), " "); got != "w narrow" || traces.Draws() != len(want[0]) {
		t.Errorf("%d draws of %s, want %d of w narrow", traces.Draws(), got, len(want[0]))
	}
	for element := range 2 {
		got, err := traces.Of("w", element)
		if err != nil {
			t.Fatal(err)
		}
		for chain, values := range got {
			for draw, v := range values {
				if v != want[chain][draw][element] {
					t.Fatalf("w[%d], chain %d, draw %d: %v, want %v", element, chain, draw, v, want[chain][draw][element])
				}
			}
		}
	}
	if got, err := traces.Of("narrow", 2); err != nil || got[2][3] != 4 {
		t.Errorf("narrow[2] of chain 2: %v, %v, want 4", got, err)
	}
	if w, unknown := traces.Elements("w"), traces.Elements("weight"); w != 2 || unknown != 0 {
		t.Errorf("w has %d elements, weight %d, want 2 and 0", w, unknown)
	}
	if _, err := traces.Of("v", 0); err == nil || !strings.Contains(err.Error(), `no quantity "v"; there are [`) {
		t.Errorf("an unknown quantity: error %v", err)
	}
	if _, err := traces.Of("w", 2); err == nil || !strings.Contains(err.Error(), `element of "w" must be 0 or more and below 2, got 2`) {
		t.Error("no error for an element that does not exist")
	}
	for want, names := range map[string][]string{
		`"weight"`: {"weight"}, "names must be distinct": {"w", "narrow", "w"}, "header must be of a float type": {"header"},
	} {
		if _, err := plan.Collect(t.Context(), build(), names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", names, err, want)
		}
	}
	finished := build()
	if _, err := plan.Collect(t.Context(), finished, []string{"w"}); err != nil {
		t.Fatal(err)
	}
	if _, err := plan.Collect(t.Context(), finished, []string{"w"}); err == nil || !strings.Contains(err.Error(), "must have samples of the plan left") {
		t.Errorf("a second time: error %v", err)
	}
	if _, err := plan.Collect(t.Context(), nil, nil); err == nil {
		t.Error("no session: no error")
	}
	if _, err := plan.Collect(t.Context(), build(), []string{"w"}, nil); err == nil || !strings.Contains(err.Error(), "hook 0 must not be nil") {
		t.Errorf("a nil hook: error %v", err)
	}
}

// Traces panic with a message where their use is wrong.
func TestTracesMisused(t *testing.T) {
	traces := langevin.NewTraces(2)
	traces.Add("w", 3)
	traces.Add("w", 3)
	for want, use := range map[string]func(){
		"at least 0, got -1":         func() { langevin.NewTraces(-1) },
		"at least 1 element, got 0":  func() { traces.Add("v", 0) },
		`"w" has 3 elements already`: func() { traces.Add("w", 2) },
		`no chain 0 of "v"`:          func() { traces.Extend("v", 0) },
		`no chain 2 of "w"`:          func() { traces.Extend("w", 2) },
		`no chain -1 of "w"`:         func() { traces.Extend("w", -1) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want one with %q", got, want)
				}
			}()
			use()
		}()
	}
	if len(traces.Names()) != 1 || len(traces.Extend("w", 1)) != 3 {
		t.Errorf("the traces have %q", traces.Names())
	}
}
