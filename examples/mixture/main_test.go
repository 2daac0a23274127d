package main

import (
	"math"
	"os"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v within %v", what, got, want, tolerance)
	}
}

// published are the published points, which are optional; the tests have made ones in their place.
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

// The published points have published moments.
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

// The loss and its slopes are those of the mixture.
func TestTiedMeans(t *testing.T) {
	data := observations()
	b := graph.New(tensor.Float64)
	theta1, theta2, loss := model(b, data, len(data), true)
	gradients := b.Gradients(loss, theta1, theta2)
	b.Output("loss", loss)
	b.Output("slope1", gradients[0])
	b.Output("slope2", gradients[1])
	value := func(theta1, theta2 float64) float64 {
		total := 0.0
		for _, x := range data {
			p := math.Exp(-(x-theta1)*(x-theta1)/4) + math.Exp(-(x-theta1-theta2)*(x-theta1-theta2)/4)
			total -= math.Log(p / 2 / math.Sqrt(4*math.Pi))
		}
		return total / float64(len(data))
	}
	err := b.OnHost(graph.LoadOptions{Seed: 1, Chains: 1}, func(session *graph.Session) error {
		for _, at := range [][2]float64{{1, 1}, {-0.3, 1.5}, {2, -5}, {0, 0}} {
			got := map[string]float64{}
			for i, name := range []string{"theta1", "theta2"} {
				if err := graph.Write(session, name, 0, 0, at[i:i+1]); err != nil {
					return err
				}
			}
			if err := session.Run(1); err != nil {
				return err
			}
			for _, name := range []string{"loss", "slope1", "slope2"} {
				var v [1]float64
				if err := graph.Read(session, name, 0, 0, v[:]); err != nil {
					return err
				}
				got[name] = v[0]
			}
			const d = 1e-6
			near(t, "loss", got["loss"], value(at[0], at[1]), 1e-12)
			near(t, "slope by theta1", got["slope1"], (value(at[0]+d, at[1])-value(at[0]-d, at[1]))/(2*d), 1e-8)
			near(t, "slope by theta2", got["slope2"], (value(at[0], at[1]+d)-value(at[0], at[1]-d))/(2*d), 1e-8)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Many chains find both modes, in their shares, by every sampler. The tolerances are four and a half standard errors of as many independent draws as there
// are chains. The samplers that are made for it cross.
func TestManyChains(t *testing.T) {
	data, _ := published(t)
	want, _ := exact(data)
	for _, m := range manyChains(data, 512) {
		kept, err := m.draw()
		if err != nil {
			t.Fatal(err)
		}
		got, errors := kept.summary(), 4.5/math.Sqrt(float64(kept.chains))
		near(t, m.name+": E[theta1]", got.mean1, want.mean1, 0.77*errors)
		near(t, m.name+": E[theta2]", got.mean2, want.mean2, 1.51*errors)
		near(t, m.name+": P(theta2>0)", got.positive, want.positive, 0.5*errors)
		least := map[string]float64{"cyclical SGLD": 0.05, "SGHMC, from (1, 1)": 0.1, replicaExchange: 0.5, "HMC": 0.3}[m.name]
		if crossed := kept.crossed(); crossed < least {
			t.Errorf("%s: %v of the chains were seen in both modes, want %v at least", m.name, crossed, least)
		}
	}
}

// Chains with the published step sizes, which begin in one mode, stay there for most of their time.
func TestOneChainMistakesAMode(t *testing.T) {
	data, _ := published(t)
	want, _ := exact(data)
	for _, m := range oneChain(data)[1:] {
		kept, err := m.draw()
		if err != nil {
			t.Fatal(err)
		}
		if wrong := kept.typicalError(want.mean2); wrong < 0.6 {
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
