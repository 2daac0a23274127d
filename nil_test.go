package pollen

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// TestNil: nil contexts, data, directories, networks, priors and schedules are errors that name
// them, and nil options change nothing.
func TestNil(t *testing.T) {
	data := &datasets.Splits{Train: letters.Squares(t, 60, 3, 1)}
	spec := Spec{Network: "mlp-3", Epochs: 2, Samples: 2, Batch: 20}
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "run")
	run, err := Fit(ctx, spec, data, dir, nil, WithObserver(nil), WithDevice(nil), WithNotes(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); err != nil {
		t.Error(err)
	}
	run = run.With(nil)
	predictor, err := run.Predictor(1)
	if err != nil {
		t.Fatal(err)
	}
	defer predictor.Close()
	var none context.Context
	fit := func(change func(s *Spec)) func() error {
		return func() error {
			s := spec
			change(&s)
			_, err := Fit(ctx, s, data, filepath.Join(t.TempDir(), "run"))
			return err
		}
	}
	const context = "the context must not be nil"
	for name, c := range map[string]struct {
		call func() error
		want string
	}{
		"fit, context":       {func() error { _, err := Fit(none, spec, data, "x"); return err }, "fit: " + context},
		"resume, context":    {func() error { _, err := Resume(none, dir, data); return err }, "resume: " + context},
		"try, context":       {func() error { _, err := Try(none, spec, data.Train, 1); return err }, "try: " + context},
		"predict, context":   {func() error { _, err := run.Predict(none, data.Train); return err }, "predict: " + context},
		"assess, context":    {func() error { _, err := run.Assess(none, data.Train, nil); return err }, "predict: " + context},
		"gradient, context":  {func() error { _, err := run.Gradient(none, data.Train); return err }, "gradient: " + context},
		"mixing, context":    {func() error { _, err := run.Mixing(none, data); return err }, "mixing: " + context},
		"calibrate, context": {func() error { return run.Calibrate(none, data.Train) }, "predict: " + context},
		"answer, context":    {func() error { _, err := predictor.Answer(none, data.Train.Images); return err }, "answer: " + context},
		"fit, data":          {func() error { _, err := Fit(ctx, spec, nil, "x"); return err }, "fit: no data to train on"},
		"fit, empty splits":  {func() error { _, err := Fit(ctx, spec, &datasets.Splits{}, "x"); return err }, "fit: no data to train on"},
		"fit, directory":     {func() error { _, err := Fit(ctx, spec, data, ""); return err }, "fit: no directory for the run"},
		"resume, data":       {func() error { _, err := Resume(ctx, dir, nil); return err }, "resume: no data to train on"},
		"try, data":          {func() error { _, err := Try(ctx, spec, nil, 1); return err }, "try: no data to train on"},
		"predict, data":      {func() error { _, err := run.Predict(ctx, nil); return err }, "no images to predict"},
		"answers":            {func() error { _, err := run.Answers(nil, nil); return err }, "answers: the predictions must not be nil"},
		"answers, files": {func() error {
			p, err := run.Predictions(ctx, data.Train, nil)
			if err == nil {
				_, err = run.Answers(p, []string{"a.png"})
			}
			return err
		}, "answers: there must be a file for each of 60 predictions, got 1"},
		"register":       {func() error { return RegisterNetwork("nothing", layers.Sequential{nil}) }, `network "nothing" must not have a nil layer`},
		"prior":          {fit(func(s *Spec) { s.Prior = &langevin.Prior{} }), "prior: no family: make a prior by Gaussian"},
		"priors":         {fit(func(s *Spec) { s.Priors = map[string]langevin.Prior{"linear1": {}} }), "layer linear1: langevin: prior: no family"},
		"schedule":       {fit(func(s *Spec) { s.Schedule = (*optimizers.Constant)(nil) }), "schedule must not be a nil *optimizers.Constant"},
		"method":         {fit(func(s *Spec) { s.Method = (*langevin.SGLD)(nil) }), "method *langevin.SGLD is a ptr, must be a struct"},
		"layers":         {fit(func(s *Spec) { s.Network, s.Layers = "", layers.Sequential{} }), "Layers must be at least 1"},
		"a layer":        {fit(func(s *Spec) { s.Network, s.Layers = "", layers.Sequential{nil} }), "layer 1: <nil>"},
		"another sample": {func() error { _, err := (&Run{}).Predict(ctx, data.Train); return err }, "level must be between 0 and 1, got 0"},
	} {
		if err := c.call(); !errors.As(err, new(InvalidError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want that %s", name, err, c.want)
		}
	}
}

// TestZeroMethods: the zero value of a method is an error that names an attribute, or has only
// attributes whose zero is documented.
func TestZeroMethods(t *testing.T) {
	complete := []string{"sgld", "random-walk", "mala", "nuts", "ensemble", "swag", "laplace", "sgd", "momentum", "nesterov", "auto"}
	for _, k := range registry {
		zero := reflect.Zero(reflect.TypeOf(k.method)).Interface().(Method)
		err := zero.Validate()
		if valid := slices.Contains(complete, k.name); valid != (err == nil) || err != nil && !strings.Contains(err.Error(), " must be ") {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if err := (langevin.KSGLD{Alpha: 0.99, Damping: 0.1, Refresh: 20}).Validate(); err == nil {
		t.Error("ksgld without Rest: no error")
	}
}
