package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// clock is a contestant that takes a fixed time for a step.
type clock struct {
	seconds float64
	fail    error
	closed  *int
}

func (c clock) run(steps int) (float64, error) { return c.seconds * float64(steps), c.fail }
func (c clock) close() error                   { *c.closed++; return nil }

func TestSidesTakeTurns(t *testing.T) {
	closed := 0
	sides := []*side{
		{name: "fast", does: clock{seconds: 0.01, closed: &closed}},
		{name: "slow", does: clock{seconds: 5, closed: &closed}},
	}
	if err := alternate(context.Background(), sides, 3); err != nil {
		t.Fatal(err)
	}
	if fast, slow := sides[0].steps, sides[1].steps; fast != 40 || slow != 1 {
		t.Errorf("rounds of %d and %d steps, want 40 and 1", fast, slow)
	}
	r := newRecord()
	r.add("case", sides, 100, "images")
	if e := r.Entries[1]; e.Ratio < 499 || e.Ratio > 501 || e.Rate != 20 || e.Seconds.Rounds != 3 {
		t.Errorf("the slow side's entry is %+v, want ratio 500, rate 20 and 3 rounds", e)
	}
	if err := closeAll(sides); err != nil || closed != 2 {
		t.Errorf("closed %d of 2: %v", closed, err)
	}
}

func TestAFailureNamesItsSide(t *testing.T) {
	closed := 0
	err := alternate(context.Background(), []*side{{name: "broken", does: clock{fail: errors.New("no"), closed: &closed}}}, 1)
	if err == nil || err.Error() != "broken: no" {
		t.Errorf("got %v, want an error that names the side", err)
	}
}

func TestStepWritesARecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"step", "--rounds", "1", "--networks", "mlp-10", "--batches", "4", "--samplers", "sgd,sgld,psgld", "--peers", "torch",
		"--python", filepath.Join(t.TempDir(), "no python"), "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	r := readRecord(t, path)
	var sides []string
	for _, e := range r.Entries {
		sides = append(sides, e.Case+": "+e.Side)
		if !(e.Rate > 0) {
			t.Errorf("%s of %s has rate %v", e.Case, e.Side, e.Rate)
		}
	}
	want := []string{
		"step mlp-10 batch 4 sgd: pollen", "step mlp-10 batch 4 sgld: pollen", "step mlp-10 batch 4 sgld: pollen, sgd",
		"step mlp-10 batch 4 psgld: pollen", "step mlp-10 batch 4 psgld: pollen, sgd",
	}
	if !slices.Equal(sides, want) {
		t.Errorf("got %q, want %q", sides, want)
	}
}

func TestRecordsHaveNoPaths(t *testing.T) {
	args := []string{"step", "--python", "/some/python", "--rounds", "3", "--json=/some/record.json", "--threads", "2", "--json", "record.json"}
	if got, want := withoutPaths(args), []string{"step", "--rounds", "3", "--threads", "2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Names that do not exist, and numbers below 1, are errors.
func TestFlags(t *testing.T) {
	for _, arguments := range []string{
		"step --peers abacus", "pretrained --peers abacus", "pretrained --works bake", "gpu --peers abacus", "gpu --predict --precisions fp8", "gpu --work bake",
		"gpu --network-work bake", "gpu --predict --chains 0", "gpu --predict --updates 0", "chains --chains 0", "predict --samples 0", "heads --rounds 0",
	} {
		c := command()
		c.SetArgs(strings.Fields(arguments))
		if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: %v, want an error that names what the flag must be", arguments, err)
		}
	}
}

// A record that could not be written is an error before anything is timed.
func TestRecordWithoutDirectory(t *testing.T) {
	c := command()
	c.SetArgs([]string{"chains", "--json", filepath.Join(t.TempDir(), "none", "record.json")})
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("got %v, want an error that names the directory", err)
	}
}

// A peer that is not installed is left out.
func TestHeadsWithoutPeers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	c := command()
	c.SetArgs([]string{
		"heads", "--rounds", "1", "--images", "8", "--features", "2", "--chains", "1", "--python", filepath.Join(t.TempDir(), "no python"), "--json", path,
	})
	if err := c.Execute(); err != nil {
		t.Fatal(err)
	}
	if r := readRecord(t, path); len(r.Entries) != 1 || !slices.Equal(r.Left, []string{"blackjax", "numpyro"}) {
		t.Errorf("%d entries, %q left out", len(r.Entries), r.Left)
	}
}

// TestTapeIsTheSameWork: Gorgonia's side has the same number of parameters as ours.
func TestTapeIsTheSameWork(t *testing.T) {
	for network := range plans {
		w := training{network, 2, "sgd"}
		program, err := w.compile()
		if err != nil {
			t.Fatal(err)
		}
		ours := 0
		for _, p := range program.Parameters() {
			ours += p.Shape.Elements()
		}
		other, err := newTapeMachine(w)
		if err != nil {
			t.Fatal(err)
		}
		theirs := 0
		for _, p := range other.(*tape).parameters {
			theirs += p.Value().Size()
		}
		if err := other.close(); err != nil || ours != theirs {
			t.Errorf("%s: %d parameters here, %d on Gorgonia (%v)", network, ours, theirs, err)
		}
	}
}
