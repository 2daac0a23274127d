package pollen

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// The runs of testdata were made at the commit 2746001, before manifests had a format's number:
//
//	pollen fit --data glyphs --model mlp-1 --batch 1000 --epochs 2 --sampler psgld --gamma none
//	      --samples 2 --folder oldrun
//	pollen fit --data glyphs --model mlp-1 --batch 50 --epochs 4 --burn-in 1 --sampler sghmc:0.2
//	      --schedule cosine:0.05,0.005 --samples 4 --folder oldhalf
//
// The second was interrupted; last.safetensors is its last sample after it was resumed then.

func glyphs(t *testing.T) *datasets.Splits {
	t.Helper()
	splits, err := datasets.Open("glyphs", datasets.Options{Offline: true})
	must(t, err)
	return splits
}

func TestOldRunsOpen(t *testing.T) {
	data := glyphs(t)
	run, err := Open("testdata/oldrun")
	must(t, err)
	m := run.Manifest()
	if want := (langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaNone}); m.Spec.Method != Method(want) {
		t.Errorf("the method is %#v, want %#v", m.Spec.Method, want)
	}
	if m.Spec.Network != "mlp-1" || m.Spec.Schedule != optimizers.Schedule(optimizers.Constant{Rate: 0.0005}) || *m.Spec.BurnIn != 1 ||
		*m.Spec.Prior != langevin.Gaussian(0.316) || *m.Spec.Temperature != 1 || m.Spec.Seed != 1 || m.Spec.Batch != 1000 {
		t.Errorf("specification %+v", m.Spec)
	}
	if m.Data.Name != "glyphs" || m.Data.Size != 20000 || m.Data.Classes() != 10 || m.Data.ClassNames[9] != "J" || m.Steps != 40 || m.Parameters != 805 {
		t.Errorf("manifest %+v", m)
	}
	if n, err := run.Expected(); err != nil || n != 2 {
		t.Errorf("%d samples are expected (%v), want 2", n, err)
	}
	// What pollen eval and pollen ood printed then; mnist was the other kind, which not every
	// machine has.
	for name, want := range map[string]string{
		"oldrun":  "accuracy 0.1503, NLL 2.2911, Brier 0.9021, ECE 0.0542",
		"oldhalf": "accuracy 0.2934, NLL 1.7730, Brier 0.7598, ECE 0.0150",
	} {
		run, err := Open(filepath.Join("testdata", name))
		must(t, err)
		a, err := run.Assess(context.Background(), data.Test, nil)
		must(t, err)
		if got := a.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A run that was interrupted then goes on to where it would have come then. Processors round sums
// differently.
func TestOldRunsGoOn(t *testing.T) {
	const tolerance = 1e-4
	data := glyphs(t)
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.CopyFS(dir, os.DirFS("testdata/oldhalf")))
	_, err := Resume(context.Background(), dir, &datasets.Splits{Train: data.Test})
	wantInvalid(t, "other data", err, "the data glyphs are not those of the run")
	_, err = Resume(context.Background(), dir, trainOn(data.Train))
	must(t, err)
	got, err := samples.ReadSample(filepath.Join(dir, "samples", "chain00000-step000001600.safetensors"))
	must(t, err)
	want, err := samples.ReadSample("testdata/oldhalf/last.safetensors")
	must(t, err)
	if got.Weight != want.Weight || got.Step != want.Step || len(got.Parameters) != len(want.Parameters) {
		t.Fatalf("step %d of weight %v, want %d of %v", got.Step, got.Weight, want.Step, want.Weight)
	}
	worst := 0.0
	for i, p := range want.Parameters {
		for j, v := range p.Values {
			worst = max(worst, math.Abs(float64(v-got.Parameters[i].Values[j])))
		}
	}
	if worst > tolerance {
		t.Errorf("a weight differs by %v", worst)
	}
	half, err := data.Train.Slice(0, 10000)
	must(t, err)
	_, err = Resume(context.Background(), dir, trainOn(half))
	wantInvalid(t, "a part of the data", err, "the data glyphs are not those of the run")
}

// Attributes that were separate settings are now the methods'.
func TestOldConfigurations(t *testing.T) {
	for config, want := range map[string]string{
		`"sampler": "sgld"`: "sgld",
		`"sampler": "psgld", "gamma": "frozen", "alpha": 0.9, "lambda": 0.001`:      "psgld:alpha=0.9,lambda=0.001,gamma=frozen",
		`"sampler": "fsgld", "alpha": 0.9, "lambda": 0.01`:                          "fsgld:alpha=0.9,damping=0.01",
		`"sampler": "ksgld", "alpha": 0.9, "lambda": 0.01`:                          "ksgld:alpha=0.9,damping=0.01,refresh=20",
		`"sampler": "sghmc:0.2,0.1"`:                                                "sghmc:friction=0.2,noise-estimate=0.1",
		`"sampler": "hmc:5,0.1", "epochs": 100, "burn-in": 50`:                      "hmc:leapfrog-steps=5,jitter=0.1",
		`"sampler": "swag:4", "prior": "laplace:0.1"`:                               "swag:rank=4",
		`"sampler": "sgld", "temperatures": "1,1.5", "temperature": 1`:              "sgld",
		`"sampler": "adam", "schedule": "cosine:0.1,0"`:                             "adam:beta1=0.9,beta2=0.999,epsilon=1e-08",
		`"sampler": "sghmc", "cycles": 2, "burn-in": 1, "data-folder": "somewhere"`: "sghmc:friction=0.1",
	} {
		if !strings.Contains(config, "epochs") {
			config += `, "epochs": 8`
		}
		m, err := parseManifest([]byte(`{"config": {"model": "mlp-3", "data": "mnist", "batch": 10, "chains": 1, "samples": 0, "seed": 3, ` + config +
			`}, "dataSize": 200, "steps": 160, "mean": 0.1, "deviation": 0.2, "watched": "w[0]"}`))
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		if err := m.check(); err != nil {
			t.Errorf("%s: %v", config, err)
		}
		if got := MethodText(m.Spec.Method); got != want || m.Spec.Seed != 3 || m.Data.Mean[0] != 0.1 || m.Data.Std[0] != 0.2 {
			t.Errorf("%s: %s in %+v, want %s", config, got, m, want)
		}
		if strings.Contains(config, "somewhere") != (m.Notes["data-folder"] == "somewhere") || m.Notes["data"] != "mnist" {
			t.Errorf("%s: notes %v", config, m.Notes)
		}
	}
	for config, want := range map[string]string{
		`{"config": []}`: "old manifest: ", `{"config": {"sampler": "dance", "data": "mnist"}}`: `old manifest: pollen: no method "dance"`,
		`{"config": {"sampler": "sgld", "data": "mnist", "schedule": "dance"}}`: `no schedule "dance"`,
		`{"config": {"sampler": "sgld", "data": "mnist", "gamma": "none"}}`:     "no attributes",
	} {
		_, err := parseManifest([]byte(config))
		wantError(t, config, err, want)
	}
}
