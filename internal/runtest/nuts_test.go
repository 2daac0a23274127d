package runtest

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
)

// dots are images of 2x2 pixels, which are brighter at the left in class 1, by less than the noise.
func dots(t testing.TB, n int) *datasets.Dataset {
	t.Helper()
	var images []byte
	var labels []int32
	noise := uint32(1)
	for i := range n {
		class := i % 2
		labels = append(labels, int32(class))
		for pixel := range 4 {
			noise = noise*1664525 + 1013904223
			images = append(images, byte(noise>>25)+byte(40*class*(1-pixel%2)))
		}
	}
	data, err := datasets.New("dots", images, labels, 1, 2, 2, nil)
	must(t, err)
	return data
}

// weightsOf returns the weights in the samples, by weight and chain, in order.
func weightsOf(t testing.TB, run *bayes.Run, chains int) [][][]float64 {
	t.Helper()
	files, err := run.Samples()
	must(t, err)
	var all [][][]float64
	for _, file := range files {
		sample, err := samples.ReadSample(file)
		must(t, err)
		at := 0
		for _, p := range sample.Parameters {
			for _, v := range p.Values {
				if at == len(all) {
					all = append(all, make([][]float64, chains))
				}
				all[at][sample.Chain] = append(all[at][sample.Chain], float64(v))
				at++
			}
		}
	}
	return all
}

// NUTS, MCLMC at small steps and HMC sample one posterior: means, variances and fourth moments of
// all weights of a logistic regression agree, by the spread of chains, at a temperature and with a
// prior that matter.
func TestNUTSAgreesWithHMC(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	const chains = 12
	data := trainOn(dots(t, 24))
	of := func(method string, epochs, burnIn int) [][][]float64 {
		run := fit(t, bayes.Spec{
			Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 2}}, Method: methodOf(t, method), Batch: 24, Epochs: epochs, BurnIn: &burnIn,
			Chains: chains, Samples: 50, Temperature: new(2.0), Prior: new(langevin.Gaussian(0.7)), Seed: 5,
		}, data)
		d, err := run.Diagnostics()
		must(t, err)
		if all := d.Temperatures[0]; !(math.Abs(float64(all.Configurational)-2) < 5*float64(all.StandardError)) || !(all.StandardError < 0.2) {
			t.Errorf("%s: temperature %v +- %v, requested 2", method, all.Configurational, all.StandardError)
		}
		none := strings.HasPrefix(method, "mclmc")
		accepts := math.IsNaN(float64(d.Acceptance)) == none && (none || d.Acceptance > 0.6 && d.Acceptance < 0.99)
		if diverged := float64(d.Diverged); !accepts || method == "nuts" && diverged != 0 || method != "nuts" && !math.IsNaN(diverged) {
			t.Errorf("%s: acceptance %v, diverged %v", method, d.Acceptance, d.Diverged)
		}
		return weightsOf(t, run, chains)
	}
	hmc := of("hmc:leapfrog-steps=8", 2000, 800)
	for name, other := range map[string][][][]float64{"NUTS": of("nuts", 250, 100), "MCLMC": of("mclmc:friction=0.1,energy-variance=1e-5", 4000, 1000)} {
		if len(other) != 10 || len(hmc) != 10 {
			t.Fatalf("%d and %d weights, want 10", len(other), len(hmc))
		}
		for weight := range other {
			for _, power := range []float64{1, 2, 4} {
				a, varianceOfA := momentOf(other[weight], power)
				b, varianceOfB := momentOf(hmc[weight], power)
				if z := (a - b) / math.Sqrt(varianceOfA+varianceOfB); !(math.Abs(z) < 4.5) {
					t.Errorf("weight %d: moment %v is %.3f by %s, %.3f by HMC: %.1f standard errors", weight, power, a, name, b, z)
				}
			}
		}
	}
}

// momentOf is the mean of a power over all chains, and the variance of this, by the chains' means.
func momentOf(chains [][]float64, power float64) (mean, variance float64) {
	var means []float64
	for _, chain := range chains {
		sum := 0.0
		for _, v := range chain {
			sum += math.Pow(v, power)
		}
		means = append(means, sum/float64(len(chain)))
	}
	mean, variance = stat.MeanVariance(means, nil)
	return mean, variance / float64(len(means))
}

// A run by NUTS that is stopped in the middle of a trajectory has whole draws only, a line of
// metrics for each, and is resumed to the same bits. Images count all passes over the data.
func TestNUTSStoppedInATrajectory(t *testing.T) {
	data := trainOn(squares(t, 40, 4, 1))
	spec := bayes.Spec{Network: "mlp-3", Method: bayes.NUTS{MaxDepth: 6}, Batch: 40, Epochs: 30, BurnIn: new(20), Samples: 5, Chains: 2}
	images := 0
	whole := fit(t, spec, data, bayes.WithObserver(func(e bayes.Event) { images += e.Images }))
	if least := 30 * 40 * 2 * 4; images < least || images%80 != 0 {
		t.Errorf("%d images, want at least %d", images, least)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx := &asked{Context: context.Background(), most: 100}
	_, err := bayes.Fit(ctx, spec, data, dir)
	wantError(t, "stopped", err, "of 30 steps", "context canceled")
	lines := strings.Split(strings.TrimSpace(readFile(t, dir, rundir.MetricsFile)), "\n")
	for i, line := range lines {
		var metrics rundir.Metrics
		must(t, json.Unmarshal([]byte(line), &metrics))
		if metrics.Step != i+1 || !(metrics.Loss > 0) || metrics.Temperature == nil {
			t.Errorf("line %d is %s", i+1, line)
		}
	}
	if len(lines) < 2 || len(lines) > 29 {
		t.Errorf("%d draws before the stop, want some of 30", len(lines))
	}
	_, err = bayes.Resume(context.Background(), dir, data)
	must(t, err)
	same(t, "resumed", contents(t, whole.Dir()), contents(t, dir))
}

// asked is a context that ends after n calls of Err.
type asked struct {
	context.Context
	most int
}

func (a *asked) Err() error {
	if a.most--; a.most < 0 {
		return context.Canceled
	}
	return nil
}
