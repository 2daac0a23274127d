package bayes

import (
	"context"
	"fmt"
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
	"pgregory.net/rapid"

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

// Dropout also applies to the inputs of linear layers in blocks, but never to the first layer's.
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

// TestNilMethod: nil, the method of a Spec that leaves it out, has no name.
func TestNilMethod(t *testing.T) {
	if name, text, optimizer := MethodName(nil), MethodText(nil), IsOptimizer(nil); name != "" || text != "" || optimizer {
		t.Errorf("got the name %q, the text %q, an optimizer: %v", name, text, optimizer)
	}
}

// TestZeroMethods: the zero value of a method is an error that names an attribute, or has only
// attributes whose zero is documented.
func TestZeroMethods(t *testing.T) {
	documented := []string{"mala", "nuts", "ensemble", "swag", "laplace", "sgd", "momentum", "nesterov", "auto"}
	for _, k := range registry {
		zero := reflect.Zero(reflect.TypeOf(k.method)).Interface().(Method)
		err := zero.Validate()
		switch valid := reflect.TypeOf(k.method).NumField() == 0 || slices.Contains(documented, k.name); {
		case !valid && err == nil:
			t.Errorf("%s: its zero value is valid: let Validate refuse it, or document the zero and name the method here", k.name)
		case err != nil && (valid || !strings.Contains(err.Error(), " must be ")):
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

// anyMethod draws a method with random attributes, valid or not.
func anyMethod(t *rapid.T) Method {
	k := rapid.SampledFrom(registry).Draw(t, "method")
	changed := reflect.New(reflect.TypeOf(k.method)).Elem()
	changed.Set(reflect.ValueOf(k.method))
	for i := range changed.NumField() {
		name, field := changed.Type().Field(i).Name, changed.Field(i)
		if !field.CanSet() {
			continue
		}
		switch field.Kind() {
		case reflect.Float64:
			if rapid.Bool().Draw(t, name+" changes") {
				field.SetFloat(rapid.Float64Range(-1e6, 1e6).Draw(t, name))
			}
		case reflect.Int:
			field.SetInt(int64(rapid.IntRange(0, 1e6).Draw(t, name)))
		case reflect.Bool:
			field.SetBool(rapid.Bool().Draw(t, name))
		case reflect.String:
			field.SetString(rapid.SampledFrom([]string{"", "none", "frozen", "exact"}).Draw(t, name))
		}
	}
	return changed.Interface().(Method)
}

// ParseMethod reads a method's text as the method.
func TestMethodTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMethod(t)
		text := MethodText(m)
		got, err := ParseMethod(text)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%q is %#v (%v), want %#v", text, got, err, m)
		}
	})
	for _, k := range registry {
		if got, err := ParseMethod(k.name); err != nil || !reflect.DeepEqual(got, k.method) {
			t.Errorf("%q is %#v (%v), want %#v", k.name, got, err, k.method)
		}
		m := k.method
		if s, ok := m.(langevin.Sampler); ok {
			m = langevin.FrozenAt(s, 1) // a run sets this step itself
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s with its customary attributes: %v", k.name, err)
		}
	}
	for _, form := range MethodForms() {
		if _, err := ParseMethod(form); err != nil {
			t.Errorf("form %q: %v", form, err)
		}
	}
	if names := MethodNames(); len(names) != len(registry) || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("names %v, want each once", names)
	}
}

func TestParseMethod(t *testing.T) {
	for text, want := range map[string]Method{
		"sgld": langevin.SGLD{}, " sghmc : 0.3 , 0.2 ": langevin.SGHMC{Friction: 0.3, NoiseEstimate: 0.2},
		"sghmc:0.3,noise-estimate=0.2":                    langevin.SGHMC{Friction: 0.3, NoiseEstimate: 0.2},
		"sghmc:noise-estimates=conv1=0.02/linear2.bias=0": langevin.SGHMC{Friction: 0.1, NoiseEstimates: "conv1=0.02/linear2.bias=0"},
		"baoab:2":                     langevin.BAOAB{Friction: 2},
		"psgld:gamma=none,alpha=0.95": langevin.PSGLD{Alpha: 0.95, Lambda: 1e-5, Gamma: langevin.GammaNone},
		"sgnht":                       langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3},
		"psghmc:friction=0.2":         langevin.PSGHMC{Friction: 0.2, Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen},
		"ccadl:alpha=0.99":            langevin.CCAdL{Friction: 0.1, Alpha: 0.99, Coupling: 1e-3},
		"smile:0.3":                   langevin.SMILE{Friction: 0.3},
		"mclmc:0.2":                   mcmc.MCLMC{Friction: 0.2, EnergyVariance: 2e-5, MaxVariance: 0.5},
		"momentum: 0.5, 1e-4":         optimizers.Momentum{Decay: 0.5, WeightDecay: 1e-4},
		"sgd:5e-4":                    optimizers.SGD{WeightDecay: 5e-4},
		"nesterov:.1,.2":              optimizers.Nesterov{Decay: 0.1, WeightDecay: 0.2},
		"adagrad:1,2":                 optimizers.Adagrad{Epsilon: 1, WeightDecay: 2},
		"adadelta:0.5,1,2":            optimizers.Adadelta{Decay: 0.5, Epsilon: 1, WeightDecay: 2},
		"rmsprop:0.99,1e-5,3":         optimizers.RMSProp{Decay: 0.99, Epsilon: 1e-5, WeightDecay: 3},
		"adam:0.1,0.2,3,4":            optimizers.Adam{Beta1: 0.1, Beta2: 0.2, Epsilon: 3, WeightDecay: 4},
		"adamw:0.1":                   optimizers.AdamW{Beta1: 0.1, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.01},
		"swag:0":                      SWAG{Rank: 0}, "mc-dropout:rate=0.5": Dropout{Rate: 0.5}, "ensemble": Ensemble{}, "laplace": LaplaceApproximation{},
	} {
		if got, err := ParseMethod(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %#v (%v), want %#v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                                `no method ""; there are `,
		"dance":                           `no method "dance"; there are `,
		"sgldd":                           `no method "sgldd"; did you mean sgld? There are `,
		"SGD":                             `no method "SGD"`,
		"sgd:1,2":                         `no attribute "2"; there are weight-decay=0`,
		"adam:,0.9":                       `beta1: "" is not a number`,
		"sgld:1":                          `"1": it has no attributes after a colon`,
		"sgld:":                           `it has no attributes`,
		"ensemble:3":                      `it has no attributes`,
		"sghmc:":                          `friction: "" is not a number`,
		"sghmc:x":                         `friction: "x" is not a number`,
		"sghmc:0.1,0.05,x,1":              `no attribute "1"; there are friction=0.1, noise-estimate=0`,
		"sghmc:dance=1":                   `no attribute "dance=1"; there are friction=0.1`,
		"sghmc:friction=0.1,0.2":          `no attribute "0.2"; there are friction=0.1`,
		"sghmc:friction=0.1,friction=0.2": "friction is given twice",
		"sghmc:0.1,friction=0.2":          "friction is given twice",
		"swag:2.5":                        "rank: 2.5 is not an integer",
		"swag:1e10":                       "rank: 1e10 is not an integer",
		"swag:NaN":                        "rank: NaN is not an integer",
		"nuts:step-size=1":                `no attribute "step-size=1"; there are target-acceptance=0.8, max-depth=10`,
		"nuts:max-depth=deep":             "max-depth: deep is not an integer",
		"hmc:leapfrog-steps=many":         "leapfrog-steps: many is not an integer",
	} {
		_, err := ParseMethod(text)
		wantInvalid(t, text, err, want)
	}
}

// anySpec draws a specification, from which any field may be left out.
func anySpec(t *rapid.T) Spec {
	s := Spec{
		Network: rapid.SampledFrom([]string{"", "lenet", "mlp-3-4", "a \"quoted\"\nname"}).Draw(t, "network"),
		Batch:   rapid.IntRange(0, 1e6).Draw(t, "batch"), Epochs: rapid.IntRange(0, 1e6).Draw(t, "epochs"),
		Chains: rapid.IntRange(0, 1e6).Draw(t, "chains"), Subset: rapid.IntRange(0, 1e6).Draw(t, "subset"),
		Samples: rapid.IntRange(0, 1e6).Draw(t, "samples"), Keep: rapid.IntRange(0, 1e6).Draw(t, "keep"), Cycles: rapid.IntRange(0, 9).Draw(t, "cycles"),
		Anchor: rapid.IntRange(0, 9).Draw(t, "anchor"), Seed: rapid.Uint64().Draw(t, "seed"),
		Symmetric: rapid.Bool().Draw(t, "symmetric"),
	}
	given := func(name string) bool { return rapid.Bool().Draw(t, name+" is given") }
	if given("augment") {
		s.Augment = &Augment{
			Flip: rapid.Bool().Draw(t, "flip"), Shift: rapid.IntRange(-5, 1e6).Draw(t, "shift"),
			Rotation: rapid.Float64Range(0, 360).Draw(t, "rotation"), Erase: rapid.Float64Range(-1, 1).Draw(t, "erase"),
			Zoom: rapid.Float64Range(-1, 5).Draw(t, "zoom"), Contrast: rapid.Float64Range(-1, 5).Draw(t, "contrast"),
			Brightness: rapid.Float64Range(-1, 5).Draw(t, "brightness"),
		}
	}
	if given("method") {
		s.Method = anyMethod(t)
	}
	if given("schedule") {
		s.Schedule = rapid.SampledFrom([]optimizers.Schedule{
			optimizers.Constant{Rate: 1. / 3}, optimizers.Cosine{First: 0.1, Last: 1e-9}, optimizers.Cyclical{Initial: 2, Cycles: 3},
		}).Draw(t, "schedule")
	}
	if given("burn-in") {
		s.BurnIn = new(rapid.IntRange(-5, 1e6).Draw(t, "burn-in"))
	}
	if given("prior") {
		s.Prior = new(rapid.SampledFrom([]langevin.Prior{
			langevin.Flat(), langevin.Gaussian(1. / 3), langevin.Laplace(0.1), langevin.StudentT(3, 0.1), langevin.ScaleMixture(0.25, 1, 0.1), langevin.FanIn(2),
		}).Draw(t, "prior"))
	}
	if given("priors") {
		s.Priors = anyPriors(t)
	}
	if given("weights") {
		s.Weights = rapid.SampledFrom([]Weighting{Equal, StepSize}).Draw(t, "weights")
	}
	if given("temperature") {
		s.Temperature = new(rapid.Float64Range(0, 1e9).Draw(t, "temperature"))
	}
	if given("temperatures") {
		s.Temperatures = rapid.SliceOfN(rapid.Float64Range(-1, 1e9), 1, 4).Draw(t, "temperatures")
	}
	return s
}

// differ describes how two specifications differ; "" if they do not.
func differ(want, got Spec) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("got %#v, want %#v", got, want)
}
