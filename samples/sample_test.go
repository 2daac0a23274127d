package samples_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// TestFromSessionPut: a chain's state moves from one session to another, in both precisions.
func TestFromSessionPut(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		build := func() *graph.Session {
			b := graph.New(dtype)
			loss := trial.Target{Field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, DataSize: 5}.Loss(b, b.Parameter(trial.ParameterName, nil, 37))
			if err := langevin.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: 5}, loss, []float64{0.1}, []float64{1}); err != nil {
				t.Fatal(err)
			}
			return trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed, FirstChain: 20, Chains: 3}, 1)
		}
		session := build()
		trial.Advance(t, session, 4)
		sample := trial.CurrentSample(t, session, 1)
		if sample.Chain != 21 || sample.Step != 4 || sample.Weight != 0.5 || len(sample.Parameters) != 1 || sample.Parameters[0].Name != trial.ParameterName {
			t.Fatalf("sample %+v", sample)
		}
		other := build()
		before := trial.Values(t, other, trial.ParameterName, 1, 37)
		if err := sample.Put(other, 2); err != nil {
			t.Fatal(err)
		}
		for i, want := range trial.Values(t, session, trial.ParameterName, 1, 37) {
			if got := trial.Values(t, other, trial.ParameterName, 2, 37)[i]; got != float64(float32(want)) {
				t.Fatalf("%v: element %d is %v, want %v", dtype, i, got, want)
			}
			if got := trial.Values(t, other, trial.ParameterName, 1, 37)[i]; got != before[i] {
				t.Fatalf("%v: another chain changed", dtype)
			}
		}
		if _, err := samples.FromSession(session, 3, 1); err == nil {
			t.Error("chain 3 of 3: no error")
		}
		if err := sample.Put(session, -1); err == nil {
			t.Error("chain -1: no error")
		}
	}
}

// badSamples are samples that do not fit the classifier.
func badSamples(good samples.Sample) map[string]samples.Sample {
	bad := map[string]samples.Sample{}
	for name, change := range map[string]func(p []samples.Parameter) []samples.Parameter{
		"a parameter less":     func(p []samples.Parameter) []samples.Parameter { return p[:len(p)-1] },
		"a parameter more":     func(p []samples.Parameter) []samples.Parameter { return append(p, p[0]) },
		"none":                 func([]samples.Parameter) []samples.Parameter { return nil },
		"another name at last": func(p []samples.Parameter) []samples.Parameter { p[3].Name = "output.shift"; return p },
		"another order":        func(p []samples.Parameter) []samples.Parameter { p[0], p[1] = p[1], p[0]; return p },
		"the transposed shape": func(p []samples.Parameter) []samples.Parameter {
			p[2].Shape = tensor.Shape{trial.HiddenUnits, trial.NetworkLabels}
			return p
		},
		"a flat shape": func(p []samples.Parameter) []samples.Parameter {
			p[0].Shape = tensor.Shape{trial.HiddenUnits * trial.ImageSize}
			return p
		},
		"too few values":        func(p []samples.Parameter) []samples.Parameter { p[3].Values = p[3].Values[1:]; return p },
		"too many values":       func(p []samples.Parameter) []samples.Parameter { p[3].Values = append(p[3].Values, 1); return p },
		"a value that is a NaN": func(p []samples.Parameter) []samples.Parameter { p[3].Values[1] = float32(math.NaN()); return p },
	} {
		s := good
		s.Parameters = nil
		for _, p := range good.Parameters {
			p.Values = append([]float32{}, p.Values...)
			s.Parameters = append(s.Parameters, p)
		}
		s.Parameters = change(s.Parameters)
		bad[name] = s
	}
	return bad
}

// TestPutRefuses: a sample of another network is refused before anything is written, however late
// the difference appears.
func TestPutRefuses(t *testing.T) {
	session := trial.Classifier(t, langevin.SGLD{}, graph.LoadOptions{Seed: 1}, 1)
	trial.Advance(t, session, 1)
	good := trial.CurrentSample(t, session, 0)
	other := trial.Classifier(t, langevin.SGLD{}, graph.LoadOptions{Seed: 2}, 1)
	before := trial.CurrentSample(t, other, 0)
	for name, bad := range badSamples(good) {
		if err := bad.Put(other, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
		for i, p := range trial.CurrentSample(t, other, 0).Parameters {
			for j, v := range p.Values {
				if v != before.Parameters[i].Values[j] {
					t.Fatalf("%s: %s was written", name, p.Name)
				}
			}
		}
	}
	if err := good.Put(other, 0); err != nil {
		t.Error(err)
	}
}
