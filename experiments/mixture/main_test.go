package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

// published are the published points, which are optional; tests have generated ones instead.
func published(t *testing.T) (points []float64, ok bool) {
	t.Helper()
	const path = "../../../shared/data/mixture100.csv"
	if _, err := os.Stat(path); err != nil {
		return observations(), false
	}
	points, err := readPoints(path)
	if err != nil {
		t.Fatal(err)
	}
	return points, true
}

// A file of points may have a heading. Files and numbers of chains that do not work are errors.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"two words\n" + strings.Repeat("1.5\r\n", minPoints), ""},
		{strings.Repeat("1.5\n", minPoints) + "x", `line 11 must be a finite number, got "x"`},
		{"NaN\n1", `line 1 must be a finite number, got "NaN"`},
		{"1 2", "at least 10 points, got 0"},
	} {
		path := filepath.Join(t.TempDir(), "points")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		points, err := readPoints(path)
		if c.err == "" && (err != nil || len(points) != minPoints) {
			t.Errorf("%q: %d points (%v), want %d", c.text, len(points), err, minPoints)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %v, want an error with %q", c.text, err, c.err)
		}
	}
	if err := run(t.Output(), filepath.Join(t.TempDir(), "none"), "", 1, 4); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("no directory for the figure: %v", err)
	}
	for _, chains := range []int{-2, 2, 5} {
		if err := run(t.Output(), t.TempDir(), "", 1, chains); err == nil || !strings.Contains(err.Error(), "chains must be even") {
			t.Errorf("%d chains: %v", chains, err)
		}
	}
}

// TestExactOfPublishedData: the published points have the published moments.
func TestExactOfPublishedData(t *testing.T) {
	data, ok := published(t)
	if !ok {
		t.Skip("the optional data mixture100.csv are absent")
	}
	s, levels := exact(data)
	near(t, "E[theta1]", s.mean1, 0.48999, 5e-5)
	near(t, "E[theta2]", s.mean2, 0.05930, 5e-5)
	near(t, "P(theta2>0)", s.positive, 0.518, 1e-3)
	for _, mode := range [][2]float64{{-0.2525, 1.55}, {1.2875, -1.55}} {
		column, row := int(math.Round((mode[0]+1.5)*60)), int(math.Round((mode[1]+4.5)*240/9))
		if density := levels.Values[row*len(levels.X)+column]; density < 0.9 {
			t.Errorf("density at the mode %v is %v of the maximum", mode, density)
		}
	}
}

// The loss and its derivatives equal the mixture's in both parametrisations, up to the rounding of
// float32 exponentials.
func TestTiedMeans(t *testing.T) {
	data := append(observations(), observations()[:maxPoints-60]...) // more than are treated at a time
	n := float64(len(data))
	value := func(theta1, theta2, moved float64) float64 {
		total := theta1*theta1/20 + theta2*theta2/2
		for i, x := range data {
			if i == 0 {
				x += moved
			}
			p := math.Exp(-(x-theta1)*(x-theta1)/4) + math.Exp(-(x-theta1-theta2)*(x-theta1-theta2)/4)
			total -= math.Log(p / 2 / math.Sqrt(4*math.Pi))
		}
		return total / n
	}
	for _, c := range []coordinates{{}, {Centred: true}} {
		b := graph.New(tensor.Float64)
		w, loss := model(b, data, len(data), c, true)
		x := b.Table("data again", data)
		b.Output("loss", loss)
		again := b.Apply(tiedMeans{c, len(data)}, x, w)
		gradients := b.Gradients(b.Apply(op.Add{}, loss, again), w, x)
		b.Output("twice the slopes", gradients[0])
		b.Output("slopes by points", gradients[1])
		err := b.OnHost(graph.LoadOptions{Seed: 1}, func(session *graph.Session) error {
			for _, at := range [][2]float64{{1, 1}, {-0.3, 1.5}, {2, -5}, {0, 0}} {
				theta := func(w []float64) (float64, float64) { return point(c, w) }
				at1, at2 := c.place(at[0], at[1])
				if theta1, theta2 := theta([]float64{at1, at2}); math.Abs(theta1-at[0])+math.Abs(theta2-at[1]) > 1e-12 {
					t.Errorf("%+v: the place of %v is that of (%v, %v)", c, at, theta1, theta2)
				}
				if err := graph.Write(session, "w", 0, 0, []float64{at1, at2}); err != nil {
					return err
				}
				if err := session.Run(1); err != nil {
					return err
				}
				got, byW, byPoint := make([]float64, 1), make([]float64, 2), make([]float64, len(data))
				for name, values := range map[string][]float64{"loss": got, "twice the slopes": byW, "slopes by points": byPoint} {
					if err := graph.Read(session, name, 0, 0, values); err != nil {
						return err
					}
				}
				const d = 1e-5
				moved := func(by1, by2, point float64) float64 {
					theta1, theta2 := theta([]float64{at1 + by1, at2 + by2})
					return value(theta1, theta2, point)
				}
				near(t, "loss", got[0], moved(0, 0, 0), 1e-7)
				near(t, "slope by the first", byW[0]/2, (moved(d, 0, 0)-moved(-d, 0, 0))/(2*d), 2e-7)
				near(t, "slope by the second", byW[1]/2, (moved(0, d, 0)-moved(0, -d, 0))/(2*d), 2e-7)
				near(t, "slope by a point", n*byPoint[0], n*(moved(0, 0, d)-moved(0, 0, -d))/(2*d), 2e-6)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Many chains of every sampler find both modes in the right proportions, and nearly all cross. With
// the test's number of chains the standard errors are four times the program's.
func TestManyChains(t *testing.T) {
	testenv.NeedsAll(t, "many chains")
	data, _ := published(t)
	want, _ := exact(data)
	for _, m := range manyChains(data, 1, 256) {
		kept, err := m.draw()
		if err != nil {
			t.Fatal(err)
		}
		got, errors, _ := kept.summary(want)
		near(t, m.name+": E[theta1]", got.mean1, want.mean1, 4.5*errors.mean1)
		near(t, m.name+": E[theta2]", got.mean2, want.mean2, 4.5*errors.mean2)
		near(t, m.name+": P(theta2>0)", got.positive, want.positive, 4.5*errors.positive)
		if errors.mean2 > 0.048 {
			t.Errorf("%s: the standard error of E[theta2] is %v, want 0.048 at most", m.name, errors.mean2)
		}
		if crossed := kept.crossed(); crossed < 0.9 {
			t.Errorf("%s: %v of the chains were seen in both modes, want 0.9 at least", m.name, crossed)
		}
	}
}

// The standard error is for a mean over chains.
func TestSummary(t *testing.T) {
	s := states{chains: 2, weights: []float64{1, 3}, theta1: []float64{0, 4, 8, 12}, theta2: []float64{-1, 1, 3, 1}}
	got, errors, typical := s.summary(summary{mean2: 1})
	if want := (summary{8, 1.5, 0.875}); got != want { // chains: 6, 2, 0.75 and 10, 1, 1
		t.Errorf("mean %+v, want %+v", got, want)
	}
	if want := (summary{2, 0.5, 0.125}); errors != want {
		t.Errorf("standard errors %+v, want %+v", errors, want)
	}
	near(t, "error of one chain", typical, math.Sqrt(0.5), 1e-12)
}

// Chains with the published step sizes that begin in one mode stay there most of the time.
func TestOneChainMistakesAMode(t *testing.T) {
	data, _ := published(t)
	want, _ := exact(data)
	for _, m := range oneChain(data, 1)[1:] {
		kept, err := m.draw()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, wrong := kept.summary(want); wrong < 0.6 {
			t.Errorf("%s: E[theta2] is off by %v, want 0.6 at least", m.name, wrong)
		}
	}
}

// SGD ends in a mode.
func TestDescent(t *testing.T) {
	data, ok := published(t)
	theta1, theta2, err := descent(data)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		near(t, "theta1", theta1, -0.2327, 0.1)
		near(t, "theta2", theta2, 1.5129, 0.1)
	} else if theta2 < 1 {
		t.Errorf("SGD ends at (%v, %v), want the mode that it began next to", theta1, theta2)
	}
}
