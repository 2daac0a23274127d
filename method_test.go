package pollen

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// brisk is a user's sampler.
type brisk struct {
	langevin.SGLD
	Pace float64
}

// briskly is another, and scalar one that has nothing to keep.
type (
	briskly struct {
		langevin.SGLD
		Pace float64
	}
	scalar float64
)

// steady is a user's optimizer.
type steady struct {
	optimizers.SGD
	Pace float64
}

func (scalar) Name() string    { return "number" }
func (scalar) Validate() error { return nil }

// A user's method trains once it is registered, and its run opens again; others are refused before
// any work.
func TestRegister(t *testing.T) {
	data := squares(t, 100, 3, 1)
	spec := Spec{Network: "mlp-4", Method: brisk{Pace: 2}, Schedule: optimizers.Constant{Rate: 0.1}, Batch: 20, Epochs: 4, Samples: 2}
	dir := filepath.Join(t.TempDir(), "run")
	_, err := Fit(context.Background(), spec, trainOn(data), dir)
	wantInvalid(t, "not registered", err, "brisk is not registered")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a refused method left the folder: %v", err)
	}
	before := registry
	defer func() { registry = before }()
	must(t, Register("brisk", brisk{Pace: 1}, optimizers.Constant{Rate: 0.1}))
	_, err = Fit(context.Background(), spec, trainOn(data), dir)
	must(t, err)
	run, err := Open(dir)
	must(t, err)
	if got := run.Manifest().Spec.Method; got != spec.Method || MethodText(got) != "brisk:pace=2" {
		t.Errorf("%#v, %q, want the method that was trained with", got, MethodText(got))
	}
	wantInvalid(t, "again", Register("brisk", brisk{}, nil), "is registered already")
	wantInvalid(t, "a known type", Register("new", langevin.SGLD{}, nil), `"sgld" is registered already`)
	wantInvalid(t, "no name", Register("", brisk{}, nil), "a word for a name")

	wantInvalid(t, "a pointer", Register("new", &briskly{Pace: 1}, optimizers.Constant{Rate: 0.1}), "is a ptr, must be a struct")
	spec.Method = (*briskly)(nil)
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "a nil pointer", err, "is a ptr, must be a struct")
	wantInvalid(t, "no struct", Register("new", scalar(1), optimizers.Constant{Rate: 0.1}), "is a float64, must be a struct")

	must(t, Register("briskly", briskly{Pace: 1}, nil))
	spec.Method, spec.Schedule = briskly{Pace: 1}, nil
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "no schedule", err, "briskly has no customary one")
	spec.Schedule = optimizers.Constant{Rate: 0.1}
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	must(t, err)

	must(t, Register("steady", steady{Pace: 1}, nil))
	spec.Method, spec.Schedule, spec.Samples = steady{Pace: 1}, nil, 0
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "no schedule", err, "steady has no customary one")

	spec.Method, spec.Schedule, spec.Batch = mcmc.HMC{LeapfrogSteps: 2, Jitter: 0.1, Masses: map[string][]float64{}}, nil, data.Len()
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "fields without text", err, "has fields that its text does not")
}

// Inputs of linear layers in blocks are dropped, too, but not the first layer's, whatever it is in.
func TestDropoutInBlocks(t *testing.T) {
	drop, linear := layers.Dropout{Rate: 0.5, AlsoPredicting: true}, layers.Linear{Outputs: 8}
	of := func(l ...layers.Layer) layers.Sequential { return l }
	for i, c := range [][2]layers.Sequential{
		{of(layers.Flatten{}, of(linear, linear), linear), of(layers.Flatten{}, of(linear, drop, linear), drop, linear)},
		{
			of(layers.Flatten{}, layers.Residual{Body: of(linear, layers.ReLU{}, linear), Shortcut: of(linear)}, linear),
			of(layers.Flatten{}, layers.Residual{Body: of(linear, layers.ReLU{}, drop, linear), Shortcut: of(linear)}, drop, linear),
		},
		{
			of(layers.Conv2D{}, layers.Residual{Body: of(linear), Shortcut: of(of(linear))}),
			of(layers.Conv2D{}, layers.Residual{Body: of(drop, linear), Shortcut: of(of(drop, linear))}),
		},
	} {
		got, err := Dropout{Rate: 0.5}.network(c[0])
		if err != nil || !reflect.DeepEqual(got, c[1]) {
			t.Errorf("case %d: %v (%v), want %v", i, got, err, c[1])
		}
	}
	if _, err := (Dropout{Rate: 0.5}).network(of(of(layers.Flatten{}, of(linear)))); err == nil {
		t.Error("a network of one layer: no error")
	}
}
