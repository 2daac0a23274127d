package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

func take(t *testing.T, s *graph.Session, chain, number int) langevin.Sample {
	t.Helper()
	sample, err := langevin.Take(s, chain, number, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

// TestTakePut: a chain's state goes out of one session and into another, in both precisions.
func TestTakePut(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		e := experiment{
			sampler: langevin.SGLD{}, dtype: dtype, field: bowl{1, 1}, dimensions: 37, chains: 3, dataSize: 5, step: 0.1, temperature: 1,
		}
		session := e.load(t)
		advance(t, session, 4)
		sample := take(t, session, 1, 21)
		if sample.Chain != 21 || sample.Step != 4 || sample.Weight != 0.5 || len(sample.Parameters) != 1 || sample.Parameters[0].Name != parameterName {
			t.Fatalf("sample %+v", sample)
		}
		other := e.load(t)
		before := values(t, other, parameterName, 1, 37)
		if err := sample.Put(other, 2); err != nil {
			t.Fatal(err)
		}
		for i, want := range values(t, session, parameterName, 1, 37) {
			if got := values(t, other, parameterName, 2, 37)[i]; got != float64(float32(want)) {
				t.Fatalf("%v: element %d is %v, want %v", dtype, i, got, want)
			}
			if got := values(t, other, parameterName, 1, 37)[i]; got != before[i] {
				t.Fatalf("%v: another chain changed", dtype)
			}
		}
		if _, err := langevin.Take(session, 3, 3, 1); err == nil {
			t.Error("chain 3 of 3: no error")
		}
		if err := sample.Put(session, -1); err == nil {
			t.Error("chain -1: no error")
		}
	}
}

// badSamples are samples that do not fit the classifier.
func badSamples(good langevin.Sample) map[string]langevin.Sample {
	bad := map[string]langevin.Sample{}
	for name, change := range map[string]func(p []langevin.Parameter) []langevin.Parameter{
		"a parameter less":     func(p []langevin.Parameter) []langevin.Parameter { return p[:len(p)-1] },
		"a parameter more":     func(p []langevin.Parameter) []langevin.Parameter { return append(p, p[0]) },
		"none":                 func([]langevin.Parameter) []langevin.Parameter { return nil },
		"another name at last": func(p []langevin.Parameter) []langevin.Parameter { p[3].Name = "output.shift"; return p },
		"another order":        func(p []langevin.Parameter) []langevin.Parameter { p[0], p[1] = p[1], p[0]; return p },
		"the transposed shape": func(p []langevin.Parameter) []langevin.Parameter {
			p[2].Shape = tensor.Shape{hiddenUnits, networkLabels}
			return p
		},
		"a flat shape": func(p []langevin.Parameter) []langevin.Parameter {
			p[0].Shape = tensor.Shape{hiddenUnits * imageSize}
			return p
		},
		"too few values":        func(p []langevin.Parameter) []langevin.Parameter { p[3].Values = p[3].Values[1:]; return p },
		"too many values":       func(p []langevin.Parameter) []langevin.Parameter { p[3].Values = append(p[3].Values, 1); return p },
		"a value that is a NaN": func(p []langevin.Parameter) []langevin.Parameter { p[3].Values[1] = float32(math.NaN()); return p },
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

// TestPutRefuses: a sample of another network is refused whole, however late the difference comes.
func TestPutRefuses(t *testing.T) {
	row := rows()[0]
	session := classifier(t, row, graph.LoadOptions{Seed: 1}, 1)
	advance(t, session, 1)
	good := take(t, session, 0, 0)
	other := classifier(t, row, graph.LoadOptions{Seed: 2}, 1)
	before := take(t, other, 0, 0)
	for name, bad := range badSamples(good) {
		if err := bad.Put(other, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
		for i, p := range take(t, other, 0, 0).Parameters {
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
