package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// lastOf are the parameters of each chain's last sample, one after the other.
func lastOf(t *testing.T, run *bayes.Run) map[int][]float32 {
	t.Helper()
	files, err := run.Samples()
	must(t, err)
	last := map[int][]float32{}
	for _, file := range files {
		s, err := samples.ReadSample(file)
		must(t, err)
		last[s.Chain] = nil
		for _, p := range s.Parameters {
			last[s.Chain] = append(last[s.Chain], p.Values...)
		}
	}
	return last
}

// TestStartAtGathered: chains of the same number in two parts with different seeds are two chains
// to start from.
func TestStartAtGathered(t *testing.T) {
	ctx, dir, data := context.Background(), t.TempDir(), trainOn(squares(t, 60, 4, 1))
	spec := bayes.Spec{Network: "mlp-5", Method: optimizers.SGD{}, Epochs: 1, Batch: 20, Chains: 1}
	var parts []string
	var from [][]float32
	for _, seed := range []uint64{3, 5} {
		spec.Seed = seed
		parts = append(parts, filepath.Join(dir, strconv.FormatUint(seed, 10)))
		run, err := bayes.Fit(ctx, spec, data, parts[len(parts)-1], with(t, 1))
		must(t, err)
		from = append(from, lastOf(t, run)[0])
	}
	_, err := bayes.Gather(filepath.Join(dir, "gathered"), parts)
	must(t, err)
	spec.Schedule, spec.Chains, spec.Start = optimizers.Constant{Rate: 1e-30}, 2, filepath.Join(dir, "gathered")
	run, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, "run"), with(t, 1))
	must(t, err)
	for chain, values := range lastOf(t, run) {
		if !slices.Equal(values, from[chain]) {
			t.Errorf("chain %d did not begin where part %d ended", chain, chain)
		}
	}
}

// TestStartRemarksOnNoise: chains with the seed and the numbers of those that they begin at would
// draw the same noise.
func TestStartRemarksOnNoise(t *testing.T) {
	ctx, dir, data := context.Background(), t.TempDir(), trainOn(squares(t, 60, 4, 1))
	spec := bayes.Spec{Network: "mlp-5", Method: langevin.SGLD{}, Epochs: 2, BurnIn: new(1), Samples: 1, Batch: 20, Chains: 2, Seed: 3}
	first, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, "first"), with(t, 1))
	must(t, err)
	optimized := bayes.Spec{Network: "mlp-5", Method: optimizers.SGD{}, Epochs: 1, Batch: 20, Chains: 2, Seed: 3}
	start, err := bayes.Fit(ctx, optimized, data, filepath.Join(dir, "start"), with(t, 1))
	must(t, err)
	for i, c := range []struct {
		from       *bayes.Run
		seed       uint64
		firstChain int
		want       bool
	}{{first, 3, 0, true}, {first, 3, 1, true}, {first, 3, 2, false}, {first, 4, 0, false}, {start, 3, 0, false}} {
		spec.Start, spec.Seed, spec.FirstChain = c.from.Dir(), c.seed, c.firstChain
		remarks := ""
		_, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, strconv.Itoa(i)), with(t, 1), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
		must(t, err)
		if strings.Contains(remarks, "had the same noise") != c.want {
			t.Errorf("from %s by seed %d, from chain %d on: %q", c.from.Dir(), c.seed, c.firstChain, remarks)
		}
	}
}

// TestStart: three chains begin at the last samples of two, and a part's chains begin as in the
// whole run.
func TestStart(t *testing.T) {
	ctx, dir, data := context.Background(), t.TempDir(), trainOn(squares(t, 60, 4, 1))
	ensemble := bayes.Spec{Network: "mlp-5", Method: bayes.Ensemble{}, Epochs: 2, Batch: 20, Chains: 2, Seed: 3}
	first, err := bayes.Fit(ctx, ensemble, data, filepath.Join(dir, "first"), with(t, 2))
	must(t, err)
	from := lastOf(t, first)
	if len(from) != 2 || slices.Equal(from[0], from[1]) {
		t.Fatalf("%d members, want two different ones", len(from))
	}
	still := bayes.Spec{
		Network: "mlp-5", Method: optimizers.SGD{}, Schedule: optimizers.Constant{Rate: 1e-30}, Epochs: 1, Batch: 20, Chains: 3, Seed: 4, Start: first.Dir(),
	}
	part := still
	part.FirstChain, part.Chains = 3, 2
	all := bayes.Spec{Network: "mlp-5", Method: mcmc.HMC{LeapfrogSteps: 1}, Epochs: 2, BurnIn: new(1), Samples: 1, Chains: 2, Start: first.Dir()}
	for name, spec := range map[string]bayes.Spec{"whole": still, "part": part, "all data": all} {
		run, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, name), with(t, 1))
		must(t, err)
		for chain, values := range lastOf(t, run) {
			square := 0.0
			for i, v := range values {
				square += float64((v-from[chain%2][i])*(v-from[chain%2][i])) / float64(len(values))
			}
			// A sampler has made a step or two; from other initial values it is .12 away.
			if moved := math.Sqrt(square); spec.Schedule != nil && moved != 0 || moved > 0.05 {
				t.Errorf("%s: chain %d did not begin at member %d", name, chain, chain%2)
			}
		}
	}
	for _, c := range []struct{ start, network, want string }{
		{filepath.Join(dir, "none"), "mlp-5", "start: "},
		{first.Dir(), "mlp-6", "it has no parameter linear1.weight of shape [6 144]: its network is another one"},
	} {
		spec := still
		spec.Start, spec.Network = c.start, c.network
		place := filepath.Join(dir, "refused")
		_, err := bayes.Fit(ctx, spec, data, place, with(t, 1))
		wantError(t, c.start, err, c.want)
		if _, err := os.Stat(place); !os.IsNotExist(err) {
			t.Errorf("%s: a run was begun (%v)", c.start, err)
		}
		links, err := filepath.Glob("/proc/self/fd/*") // none where there is no such file system
		must(t, err)
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, place) {
				t.Errorf("%s is still open", to)
			}
		}
		t.Chdir(t.TempDir())
		_, err = bayes.Fit(ctx, spec, data, ".", with(t, 1))
		wantError(t, "a folder that cannot be removed", err, c.want, "an incomplete run could not be removed (")
	}
}
