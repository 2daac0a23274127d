package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/optimizers"
)

// TestMomentumPath: on the ravine momentum is two linear recursions, theta <- theta - v and
// v <- 0.8 v + 0.02 k theta, with the curvatures k = 1 and 50.
func TestMomentumPath(t *testing.T) {
	l := landscapes()[0]
	l.steps = 50
	track, err := l.descend(rule{optimizers.Momentum{Decay: 0.8}, 0.02})
	if err != nil {
		t.Fatal(err)
	}
	theta, velocity := l.start, [2]float64{}
	for step := range l.steps + 1 {
		if math.Abs(track.X[step]-theta[0]) > 1e-12 || math.Abs(track.Y[step]-theta[1]) > 1e-12 {
			t.Fatalf("step %d: got (%v, %v), want %v", step, track.X[step], track.Y[step], theta)
		}
		for i, curvature := range []float64{1, 50} {
			velocity[i] = 0.8*velocity[i] + 0.02*curvature*theta[i]
			theta[i] -= velocity[i]
		}
	}
}

// TestMinima: every optimizer except Adadelta, which is slow, comes close to the minima.
func TestMinima(t *testing.T) {
	for _, l := range landscapes() {
		if value := l.value(l.minimum[0], l.minimum[1]); value != 0 {
			t.Errorf("%s: f is %v at its minimum", l.name, value)
		}
		for _, r := range l.rules {
			track, err := l.descend(r)
			if err != nil {
				t.Fatal(err)
			}
			limit := 0.02
			if r.rate == 0 {
				limit = 0.1 * l.value(l.start[0], l.start[1])
			}
			if len(track.X) != l.steps+1 {
				t.Fatalf("%s: %s: %d places, want %d", l.name, track.Method, len(track.X), l.steps+1)
			}
			if value := l.value(track.X[l.steps], track.Y[l.steps]); !(value < limit) {
				t.Errorf("%s: %s ends at f = %v, want less than %v", l.name, track.Method, value, limit)
			}
		}
	}
}

func TestRunSavesFigures(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, dir); err != nil {
		t.Fatal(err)
	}
	for _, l := range landscapes() {
		if _, err := os.Stat(filepath.Join(dir, l.name+".png")); err != nil {
			t.Error(err)
		}
	}
}
