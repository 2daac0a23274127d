package bayes

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// brisk is a custom sampler.
type brisk struct {
	langevin.SGLD
	Pace float64
}

// briskly is another custom sampler, and scalar a method that is not a struct.
type (
	briskly struct {
		langevin.SGLD
		Pace float64
	}
	scalar float64
)

// steady is a custom optimizer.
type steady struct {
	optimizers.SGD
	Pace float64
}

func (scalar) Name() string    { return "number" }
func (scalar) Validate() error { return nil }

// A custom method trains if it is registered, and its run opens again; other methods are refused
// before any work.
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

	wantInvalid(t, "a pointer", Register("new", &briskly{Pace: 1}, optimizers.Constant{Rate: 0.1}), "is a pointer, must be a struct")
	spec.Method = (*briskly)(nil)
	_, err = Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "a nil pointer", err, "is a pointer, must be a struct")
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

// Inputs of linear layers in blocks are dropped, too, but never those of the first layer.
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

// TestNil: nil contexts, data, directories, networks, priors and schedules are errors that name
// them, and nil options change nothing.
func TestNil(t *testing.T) {
	data := &datasets.Splits{Train: letters.Squares(t, 60, 3, 1)}
	spec := Spec{Network: "mlp-3", Method: langevin.SGLD{}, Epochs: 2, Samples: 2, Batch: 20}
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
		"calibrate, context": {func() error { return run.Calibrate(none, data.Train) }, "calibrate: " + context},
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
		"method":         {fit(func(s *Spec) { s.Method = (*langevin.SGLD)(nil) }), "method *langevin.SGLD is a pointer, must be a struct"},
		"layers":         {fit(func(s *Spec) { s.Network, s.Layers = "", layers.Sequential{} }), "Layers must be at least 1"},
		"a layer":        {fit(func(s *Spec) { s.Network, s.Layers = "", layers.Sequential{nil} }), "layer 1: <nil>"},
		"another sample": {func() error { _, err := (&Run{}).Predict(ctx, data.Train); return err }, "level must be between 0 and 1, got 0"},
	} {
		if err := c.call(); !errors.As(err, new(*InvalidError)) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want that %s", name, err, c.want)
		}
	}
}

// TestZeroMethods: the zero value of a method is an error that names an attribute, or has only
// attributes whose zero is documented.
func TestZeroMethods(t *testing.T) {
	documented := []string{"mala", "nuts", "ensemble", "swag", "laplace", "sgd", "momentum", "nesterov", "auto"}
	for _, k := range registry {
		zero := reflect.Zero(reflect.TypeOf(k.method)).Interface().(Method)
		err := zero.Validate()
		valid := reflect.TypeOf(k.method).NumField() == 0 || slices.Contains(documented, k.name)
		if valid != (err == nil) || err != nil && !strings.Contains(err.Error(), " must be ") {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	if err := (langevin.KSGLD{Alpha: 0.99, Damping: 0.1, Refresh: 20}).Validate(); err == nil {
		t.Error("ksgld without Rest: no error")
	}
}

// decaying is a custom schedule, rate/(1+t/50). wrong replaces its rates.
type decaying struct {
	Rate  float64
	wrong []float64
}

func (d decaying) Validate() error { return nil }
func (d decaying) String() string  { return "decaying:" + strconv.FormatFloat(d.Rate, 'g', -1, 64) }

func (d decaying) Rates(steps int) ([]float64, error) {
	if d.wrong != nil {
		return d.wrong, nil
	}
	rates := make([]float64, steps)
	for t := range rates {
		rates[t] = d.Rate / (1 + float64(t)/50)
	}
	return rates, nil
}

// pretending is a schedule that claims to be another one.
type pretending struct{ decaying }

func (pretending) String() string { return "constant:0.1" }

// A custom schedule trains if it is registered, and its run opens again and continues. Schedules
// whose text is not theirs, or whose rates are wrong, are refused before any work.
func TestCustomSchedule(t *testing.T) {
	data := squares(t, 100, 3, 1)
	fit := func(method Method, schedule optimizers.Schedule, dir string) error {
		spec := Spec{Network: "mlp-4", Method: method, Schedule: schedule, Batch: 20, Epochs: 4}
		_, err := Fit(context.Background(), spec, trainOn(data), dir)
		return err
	}
	dir := filepath.Join(t.TempDir(), "run")
	wantInvalid(t, "not registered", fit(langevin.SGLD{}, decaying{Rate: 0.1}, dir), "RegisterSchedule")
	wantInvalid(t, "another's text", fit(langevin.SGLD{}, pretending{decaying{Rate: 0.1}}, dir), `its text "constant:0.1"`)
	registerDecaying(t)
	must(t, fit(langevin.SGLD{}, optimizers.WarmUp{Steps: 3, Then: decaying{Rate: 0.1}}, dir))
	run, err := Open(dir)
	must(t, err)
	if got := run.Manifest().Spec.Schedule; !reflect.DeepEqual(got, optimizers.WarmUp{Steps: 3, Then: decaying{Rate: 0.1}}) {
		t.Errorf("opened with schedule %v", got)
	}
	for want, wrong := range map[string][]float64{
		"has 0 rates for 20 steps":                 {},
		"has 2 rates for 20 steps":                 {0.1, 0.1},
		"finite in float32, got NaN at step 3":     append([]float64{0.1, 0.1, 0.1, math.NaN()}, make([]float64, 16)...),
		"must be at least 0 and finite in float32": append([]float64{-0.1}, make([]float64, 19)...),
	} {
		_, err := ratesOf(decaying{wrong: wrong}, 20)
		wantInvalid(t, want, err, want)
		if len(wrong) < 20 { // a warm-up finds it, too
			_, err = ratesOf(optimizers.WarmUp{Steps: 3, Then: decaying{wrong: wrong}}, 23)
			wantInvalid(t, "after a warm-up", err, want)
		}
	}
}

var decayingRegistered sync.Once

func registerDecaying(t *testing.T) {
	decayingRegistered.Do(func() {
		must(t, optimizers.RegisterSchedule("decaying", func(text string) (optimizers.Schedule, error) {
			rate, err := strconv.ParseFloat(text, 64)
			return decaying{Rate: rate}, err
		}))
	})
}

// Held-out data that a run could not be assessed on are refused before it trains, with and without
// noise.
func TestHeldOutDataAreChecked(t *testing.T) {
	train, validation, test := squares(t, 60, 3, 1), squares(t, 20, 3, 2), squares(t, 20, 3, 3)
	large, err := datasets.New("large", make([]byte, 4*20*20), []int32{0, 1, 2, 0}, 1, 20, 20, train.ClassNames)
	must(t, err)
	other := *test
	other.ClassNames = []string{"0", "1", "x"}
	unlabelled, err := datasets.New("unlabelled", test.Images, nil, test.Channels, test.Height, test.Width, nil)
	must(t, err)
	for _, method := range []Method{langevin.SGLD{}, optimizers.SGD{}} {
		fit := func(data datasets.Splits, options ...Option) error {
			spec := Spec{Network: "mlp-4", Method: method, Schedule: optimizers.Constant{Rate: 0.1}, Batch: 20, Epochs: 9}
			_, err := Fit(context.Background(), spec, &data, filepath.Join(t.TempDir(), "run"), options...)
			return err
		}
		const shape = "large has images of 1x20x20, must have the 1x12x12 of squares"
		wantInvalid(t, "test shape", fit(datasets.Splits{Train: train, Test: large}), shape)
		wantInvalid(t, "both", fit(datasets.Splits{Train: train, Validation: validation, Test: large}), shape)
		wantInvalid(t, "test class", fit(datasets.Splits{Train: train, Test: &other}), `has a class "x"`)
		wantInvalid(t, "training images", fit(datasets.Splits{Train: train, Validation: train}), "validation: squares has the images to train on")
		wantInvalid(t, "level", fit(datasets.Splits{Train: train}, WithLevel(2)), "level must be between 0 and 1, got 2")
		must(t, fit(datasets.Splits{Train: train, Validation: validation, Test: unlabelled}, WithClock(nil)))
	}
}
