package runtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// partOf are a specification's settings for a small run on 40 images.
func partOf(s bayes.Spec, first, chains int) bayes.Spec {
	s.Network, s.Seed, s.FirstChain, s.Chains = "mlp-6-4", 7, first, chains
	if s.Batch == 0 {
		s.Batch = 10
	}
	if s.Epochs == 0 {
		s.Epochs = 8
	}
	return s
}

func stripedSplits(t *testing.T) *datasets.Splits {
	t.Helper()
	images, labels := stripes(40)
	data, err := datasets.New("stripes", images, labels, 1, 8, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &datasets.Splits{Train: data}
}

// samplesOf are the contents of a run's sample files by their names.
func samplesOf(t *testing.T, run *bayes.Run) map[string]string {
	t.Helper()
	files, err := run.Samples()
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		contents[filepath.Base(path)] = string(content)
	}
	return contents
}

// Chain 1 run separately has the same samples, to the bit, as in a run of two chains, whether or
// not it is interrupted.
func TestFirstChainIsThatOfTheWholeRun(t *testing.T) {
	constant := optimizers.Constant{Rate: 0.01}
	specs := map[string]bayes.Spec{
		"sgld":     {Method: langevin.SGLD{}},
		"psgld":    {Method: langevin.PSGLD{Alpha: 0.9, Lambda: 1e-5, Gamma: langevin.GammaFrozen}},
		"sghmc":    {Method: langevin.SGHMC{Friction: 0.1}},
		"matched":  {Method: langevin.MatchedFriction{Friction: 0.01, Masses: langevin.MassesPrior}},
		"cyclical": {Method: langevin.BAOAB{Friction: 0.1}, Cycles: 2, BurnIn: new(2)},
		"anchored": {Method: langevin.SGLD{}, Anchor: 2, Schedule: constant},
		"exchange": {Method: langevin.SGLD{}, Temperatures: []float64{1, 10, 100}, Epochs: 60, Schedule: constant},
		"hmc":      {Method: mcmc.HMC{LeapfrogSteps: 3, Jitter: 0.2}, Batch: 40, Epochs: 60, Samples: 4},
		"mclmc":    {Method: mcmc.MCLMC{Friction: 0.1, EnergyVariance: 1e-3}, Batch: 40, Epochs: 60, Samples: 4},
		"nuts":     {Method: bayes.NUTS{MaxDepth: 4}, Batch: 40, Epochs: 60, BurnIn: new(45), Samples: 4},
		"swag":     {Method: bayes.SWAG{Rank: 3}, Samples: 4},
		"laplace":  {Method: bayes.LaplaceApproximation{}, Samples: 4},
		"bbb":      {Method: bayes.BayesByBackprop{InitialStd: 0.02}, Samples: 4},
		"dropout":  {Method: bayes.Dropout{Rate: 0.25}, Samples: 2},
		"adam":     {Method: optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}},
		"in steps": {Method: langevin.SGLD{}, BurnInSteps: 5, Thinning: 9},
		"ksgld":    {Method: langevin.KSGLD{Alpha: 0.9, Damping: 0.1, Refresh: 4, Rest: langevin.SGLD{}}},
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			data, dir := stripedSplits(t), t.TempDir()
			whole, err := bayes.Fit(context.Background(), partOf(spec, 0, 2), data, filepath.Join(dir, "whole"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(context.Background())
			part, err := bayes.Fit(ctx, partOf(spec, 1, 1), data, filepath.Join(dir, "part"), bayes.WithObserver(func(bayes.Event) { stop() }))
			if unfinished := (*bayes.UnfinishedError)(nil); errors.As(err, &unfinished) {
				part, err = bayes.Resume(context.Background(), filepath.Join(dir, "part"), data)
			}
			if err != nil {
				t.Fatal(err)
			}
			all, got, of1 := samplesOf(t, whole), samplesOf(t, part), 0
			for file, content := range all {
				if !strings.HasPrefix(file, "chain00001-") {
					continue
				}
				of1++
				if got[file] != content {
					t.Errorf("%s differs", file)
				}
			}
			if of1 == 0 || of1 != len(got) || 2*of1 != len(all) {
				t.Errorf("%d files of the chain on its own, %d of it and %d in all as one of two", len(got), of1, len(all))
			}
			if want, err := part.Expected(); err != nil || len(got) != want {
				t.Errorf("%d samples, the run expects %d (%v)", len(got), want, err)
			}
		})
	}
}

// Chains whose numbers no run has are refused before any work.
func TestFirstChainOutOfRange(t *testing.T) {
	for text, spec := range map[string]bayes.Spec{
		"first-chain must be 0 to 65534, got -1":    {Chains: 1, FirstChain: -1},
		"first-chain must be 0 to 65534, got 65535": {Chains: 1, FirstChain: 65535},
		"first-chain must be 0 to 32766, got 32767": {Chains: 1, FirstChain: 32767, Temperatures: []float64{1, 2}},
	} {
		_, err := spec.Resolve()
		var wrong *bayes.InvalidError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want a refusal with %q", err, text)
		}
	}
}

// A plan in steps is written and read back. It cannot be combined with epochs of burn-in or with
// a number of samples.
func TestPlanInSteps(t *testing.T) {
	given := bayes.Spec{Epochs: 100, BurnInSteps: 300, Thinning: 250, FirstChain: 3}
	resolved, err := given.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if resolved.BurnIn != nil || resolved.Samples != 0 {
		t.Errorf("burn-in of %v epochs and %d samples, want neither", resolved.BurnIn, resolved.Samples)
	}
	content, err := resolved.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var back bayes.Spec
	if err := back.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	if back.BurnInSteps != 300 || back.Thinning != 250 || back.FirstChain != 3 {
		t.Errorf("%s is read as %+v", content, back)
	}
	for text, wrong := range map[string]bayes.Spec{
		"only one of them may be given":            {BurnIn: new(1), BurnInSteps: 300},
		"samples is 5 and thinning is 10":          {Samples: 5, Thinning: 10},
		"burn-in-steps must be at least 1, got -1": {BurnInSteps: -1},
		"thinning must be at least 1, got -1":      {Thinning: -1},
		"thinning applies to ":                     {Method: bayes.SWAG{Rank: 3}, Thinning: 10},
		"burn-in-steps applies to ":                {Method: optimizers.SGD{}, BurnInSteps: 10},
	} {
		if _, err := wrong.Resolve(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want a refusal with %q", err, text)
		}
	}
	data := stripedSplits(t).Train
	_, err = bayes.Try(context.Background(), bayes.Spec{Batch: 10, Epochs: 2, BurnInSteps: 5, Thinning: 4}, data, 2)
	if err == nil || !strings.Contains(err.Error(), "thinning of 4 steps gives no sample in 8 steps, burn-in of 5 included") {
		t.Errorf("%v, want a refusal: there is no sample", err)
	}
}
