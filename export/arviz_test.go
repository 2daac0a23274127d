package export

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// traces returns the values of an element of a parameter, by chain.
func traces(t *testing.T, run *bayes.Run, name string, element int) [][]float64 {
	t.Helper()
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	chains := make([][]float64, 2)
	for i := range draws.Len() {
		s, err := draws.Read(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Parameters {
			if p.Name == name {
				chains[draws.Chain(i)] = append(chains[draws.Chain(i)], float64(p.Values[element]))
			}
		}
	}
	return chains
}

// Labels are drawn with the probabilities of the classes.
func TestDrawnLabel(t *testing.T) {
	probabilities := []float32{0, 0.25, 0, 0.75, 0}
	for u, want := range map[float32]int64{1e-7: 1, 0.25: 1, 0.2500001: 3, 1: 3} {
		if got := drawnLabel(probabilities, u); got != want {
			t.Errorf("drawnLabel(%v) = %d, want %d", u, got, want)
		}
	}
	if got := drawnLabel([]float32{0.3, 0.6999999}, 1); got != 1 {
		t.Errorf("drawnLabel where the sum is below 1 = %d, want 1", got)
	}
}

// TestArviZ: the groups have the samples, and ArviZ's diagnostics of them equal Pollen's.
func TestArviZ(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 16)
	dir := filepath.Join(t.TempDir(), "run.zarr")
	remarks, err := ArviZ(t.Context(), run, data.Test, dir)
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	chains := traces(t, run, "linear1.weight", 3)
	chunk, err := os.ReadFile(filepath.Join(dir, "posterior/linear1.weight/1.2.0.0"))
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, len(chunk)/4)
	copy(tensor.Bytes(values), chunk)
	if len(values) != 8*side*side || float64(values[3]) != chains[1][2] {
		t.Errorf("the chunk has %d values, and %v, want %v", len(values), values[3], chains[1][2])
	}
	var all struct {
		Metadata map[string]struct {
			Shape []int
			Axes  []string `json:"_ARRAY_DIMENSIONS"`
			Run   string   `json:"run_digest"`
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, ".zmetadata"))
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := len(chains[0])
	for name, shape := range map[string][]int{
		"posterior/linear1.weight": {2, n, 8, side * side}, "sample_stats/loss": {2, n}, "sample_stats/step_size": {2, n},
		"posterior_predictive/probabilities": {2, n, 40, 3}, "posterior_predictive/label": {2, n, 40},
		"log_likelihood/label": {2, n, 40}, "observed_data/label": {40},
	} {
		if got := all.Metadata[name+"/.zarray"].Shape; !slices.Equal(got, shape) {
			t.Errorf("%s has shape %v, want %v", name, got, shape)
		}
		axes := all.Metadata[name+"/.zattrs"].Axes
		if len(axes) != len(shape) {
			t.Errorf("%s has axes %v", name, axes)
		}
		for i, axis := range axes {
			if got := all.Metadata[filepath.ToSlash(filepath.Join(filepath.Dir(name), axis, ".zarray"))].Shape; !slices.Equal(got, shape[i:i+1]) {
				t.Errorf("the coordinates %s of %s have shape %v, want %v", axis, name, got, shape[i:i+1])
			}
		}
	}
	if digest, err := run.Digest(); err != nil || all.Metadata["posterior/.zattrs"].Run != digest {
		t.Errorf("the attributes do not have the digest %s (%v)", digest, err)
	}
	if _, err := ArviZ(t.Context(), run, data.Test, dir); err == nil || !strings.Contains(err.Error(), "must be new or empty") {
		t.Errorf("a second export: %v", err)
	}
	rhat, err := diagnostics.SplitRHat(chains)
	if err != nil {
		t.Fatal(err)
	}
	bulk, tail, err := diagnostics.EffectiveSampleSize(chains)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := json.Marshal(map[string]float64{"rhat": rhat, "bulk": bulk, "tail": tail})
	if err != nil {
		t.Fatal(err)
	}
	python(t, "arviz_check.py", dir, string(expected))
}

// Runs of samplers on all data have statistics of each draw, separately for each chain: the
// acceptance and the step size of its proposal, its energy, and whether the trajectory diverged.
func TestArviZDraws(t *testing.T) {
	data := &datasets.Splits{Train: patterns(t, 30, 1, 1), Test: patterns(t, 6, 1, 3)}
	for text, want := range map[string][]string{
		"nuts": {"acceptance_rate", "diverging", "energy", "lp", "n_steps"}, "hmc": {"acceptance_rate", "accepted", "energy", "lp"}, "mclmc": {"energy_error", "lp"},
	} {
		t.Run(text, func(t *testing.T) {
			method, err := bayes.ParseMethod(text)
			if err != nil {
				t.Fatal(err)
			}
			spec := bayes.Spec{Network: "mlp-4", Method: method, Epochs: 60, Chains: 2, Samples: 5, Prior: new(langevin.Gaussian(0.5))}
			run, err := bayes.Fit(t.Context(), spec, data, filepath.Join(t.TempDir(), "run"))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "run.zarr")
			if _, err := ArviZ(t.Context(), run, data.Test, dir); err != nil {
				t.Fatal(err)
			}
			present, err := os.ReadDir(filepath.Join(dir, statsGroup))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, entry := range present {
				if slices.Contains(slices.Collect(maps.Values(drawArrays)), entry.Name()) && entry.Name() != stepSizeArray {
					got = append(got, entry.Name())
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the draws have %v, want %v", got, want)
			}
			lp, steps := statistic(t, dir, "lp"), statistic(t, dir, stepSizeArray)
			if slices.Equal(lp[:5], lp[5:]) || steps[0] <= 0 || steps[0] == 1 {
				t.Errorf("lp is %v and the step size %v, for both chains", lp, steps)
			}
			for i, want := range logDensities(t, run, data.Train) {
				if math.Abs(lp[i]-want) > 1e-2 { // the network computes in float32
					t.Errorf("lp of draw %d is %v, want %v", i, lp[i], want)
				}
			}
			if text == "mclmc" {
				return
			}
			energies, fractions := statistic(t, dir, "energy"), make([]float64, 2)
			for chain := range fractions {
				if fractions[chain], err = diagnostics.BFMI(energies[5*chain : 5*chain+5]); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := json.Marshal(map[string]any{"bfmi": fractions})
			if err != nil {
				t.Fatal(err)
			}
			python(t, "arviz_draws_check.py", dir, string(expected))
		})
	}
}

// TestArviZWithoutChain: the statistics describe the chains that have samples.
func TestArviZWithoutChain(t *testing.T) {
	method, err := bayes.ParseMethod("hmc")
	if err != nil {
		t.Fatal(err)
	}
	spec := bayes.Spec{Network: "mlp-4", Method: method, Epochs: 60, Chains: 2, FirstChain: 3, Samples: 5, Prior: new(langevin.Gaussian(0.5))}
	run, err := bayes.Fit(t.Context(), spec, splits(t, 1), filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	lp := func(run *bayes.Run) []float64 {
		dir := filepath.Join(t.TempDir(), "run.zarr")
		if _, err := ArviZ(t.Context(), run, nil, dir); err != nil {
			t.Fatal(err)
		}
		return statistic(t, dir, "lp")
	}
	both := lp(run)
	lost, err := filepath.Glob(filepath.Join(run.Dir(), "samples", "chain00003-*"))
	if err != nil || len(lost) != 5 {
		t.Fatalf("%d samples of the first chain (%v)", len(lost), err)
	}
	for _, path := range lost {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if run, err = bayes.Open(run.Dir(), bayes.WithoutDamaged()); err != nil {
		t.Fatal(err)
	}
	if got := lp(run); !slices.Equal(got, both[5:]) {
		t.Errorf("lp is %v, want %v", got, both[5:])
	}
}

// logDensities returns the logarithm of the posterior's density at each sample, up to the evidence,
// for the prior of TestArviZDraws.
func logDensities(t *testing.T, run *bayes.Run, train *datasets.Dataset) (all []float64) {
	t.Helper()
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.Predictions(t.Context(), train, func(probabilities []float32, _ float64) error {
		s, err := draws.Read(len(all))
		if err != nil {
			return err
		}
		sum := 0.0
		for i, label := range train.Labels {
			sum += math.Log(float64(probabilities[i*train.Classes+int(label)]))
		}
		for _, p := range s.Parameters {
			for _, v := range p.Values {
				sum += langevin.Gaussian(0.5).LogDensity(float64(v))
			}
		}
		all = append(all, sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// statistic reads an array of sample_stats.
func statistic(t *testing.T, dir, name string) []float64 {
	t.Helper()
	chunk, err := os.ReadFile(filepath.Join(dir, statsGroup, name, "0.0"))
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, len(chunk)/8)
	copy(tensor.Bytes(values), chunk)
	return values
}

// TestNPZ: NumPy reads the arrays, and the average of the samples is the mean.
func TestNPZ(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	path := filepath.Join(t.TempDir(), "predictions.npz")
	if err := NPZ(t.Context(), run, data.Test, path); err != nil {
		t.Fatal(err)
	}
	p, err := predict(t.Context(), run, data.Test)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := run.Answers(p.average, nil)
	if err != nil {
		t.Fatal(err)
	}
	arrays := map[string]npz.Array{}
	for _, a := range p.arrays(answers, data.Test.ClassNames) {
		arrays[a.Name] = a
	}
	s, n, k := p.size()
	draws, err := run.Draws()
	if err != nil || s != draws.Len() {
		t.Fatalf("%d predictions of %d samples (%v)", s, draws.Len(), err)
	}
	total := 0.0
	for _, w := range p.weights {
		total += w
	}
	for i, mean := range arrays["mean"].Values.([]float64) {
		average := 0.0
		for sample, w := range p.weights {
			average += w / total * float64(p.probabilities[sample*n*k+i])
		}
		if math.Abs(mean-average) > 1e-6 {
			t.Fatalf("mean %d is %v, want %v", i, mean, average)
		}
	}
	chains, numbers := arrays["chain"].Values.([]int64), arrays["draw"].Values.([]int64)
	if chains[0] != 0 || chains[s-1] != 1 || numbers[s-1] != int64(s/2-1) || numbers[s/2] != 0 {
		t.Errorf("chains are %v, draws %v", chains, numbers)
	}
	for _, name := range []string{"labels", "entropy", "nonconformity", "prediction_set", "in_distribution", "classes"} {
		if _, has := arrays[name]; !has {
			t.Errorf("there is no array %s", name)
		}
	}
	python(t, "npz_check.py", path)
}

// TestGathered: the chains of all parts are exported.
func TestGathered(t *testing.T) {
	first, data := fitted(t, "mlp-8", 1, 3)
	m := first.Manifest()
	spec := m.Spec
	spec.Seed++
	second, err := bayes.Fit(t.Context(), spec, data, filepath.Join(t.TempDir(), "second"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := bayes.Gather(filepath.Join(t.TempDir(), "gathered"), []string{first.Dir(), second.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	if n := draws.Len(); draws.Chain(n-1) != 3 || draws.Dir(n-1) == draws.Dir(0) {
		t.Errorf("the last sample is of chain %d in %s", draws.Chain(n-1), draws.Dir(n-1))
	}
	dir := filepath.Join(t.TempDir(), "run.zarr")
	if _, err := ArviZ(t.Context(), run, data.Test, dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "posterior/linear1.weight/3.2.0.0")); err != nil {
		t.Error(err)
	}
	remarks, err := ONNX(t.Context(), run, filepath.Join(t.TempDir(), "model.onnx"), ONNXOptions{})
	if err != nil || !strings.Contains(strings.Join(remarks, " "), "no calibration") {
		t.Errorf("remarks %v (%v), want one about the calibration, which a gathered run has only if it is made", remarks, err)
	}
}
