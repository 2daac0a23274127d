package bayes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/graph"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// A specification survives JSON unchanged.
func TestSpecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySpec(t)
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Spec
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := differ(want, got); diff != "" {
			t.Fatalf("%s: %s", text, diff)
		}
	})
}

func TestSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                "pollen: specification",
		`{"batchSize": 3}`:                  `no setting "batchSize"; there are model, cut,`,
		`{"batch": 1.5}`:                    `batch must be an integer, got "1.5"`,
		`{"batch": "many"}`:                 `batch must be an integer, got "\"many\""`,
		`{"batch": null}`:                   `batch must be an integer, got "null"`,
		`{"batch": 0}`:                      "batch must be at least 1, got 0",
		`{"batch": -3}`:                     "batch must be at least 1, got -3",
		`{"model": null}`:                   "model must be a string, got null",
		`{"model": 3}`:                      "model must be a string, got 3",
		`{"model": {"a": 1}}`:               `model must be a string, got {"a": 1}`,
		`{"method": "dance"}`:               `no method "dance"`,
		`{"schedule": "dance"}`:             `no schedule "dance"`,
		`{"prior": "dance"}`:                `fan-in:GAIN or start:S, got "dance"`,
		`{"temperatures": "1,hot"}`:         `"hot" is not a number`,
		`{"temperature": 1e999}`:            `temperature must be a number, got "1e999"`,
		`{"seed": -1}`:                      `seed must be an integer of at least 0, got "-1"`,
		`{"seed": 18446744073709551616}`:    "seed must be ",
		`{"burn-in": 99999999999999999999}`: "burn-in must be ",
	} {
		var s Spec
		wantError(t, text, json.Unmarshal([]byte(text), &s), want)
	}
	var s Spec
	wantInvalid(t, "setting", s.Set("dance", "1"), `no setting "dance"; there are model, cut,`)
	for _, name := range []string{"batch", "burn-in", "temperature", "seed", "cycles"} {
		wantInvalid(t, name, s.Set(name, "x"), name)
	}
	// An error changes nothing.
	s.Prior, s.Priors = new(langevin.Laplace(0.1)), map[string]langevin.Prior{"conv1": langevin.Gaussian(1)}
	for _, name := range []string{"prior", "priors", "temperature", "temperatures", "schedule", "method"} {
		before := s.Texts()
		wantInvalid(t, name, s.Set(name, "x"), name)
		if after := s.Texts(); !maps.Equal(after, before) {
			t.Errorf("%s: got %v, want %v as before", name, after, before)
		}
	}
}

// Resolve fills in only the fields that apply to a method; a resolved specification does not change
// when it is resolved again, or read from its JSON.
func TestResolve(t *testing.T) {
	gaussian, one := new(langevin.Gaussian(0.316)), new(1.0)
	base := Spec{Network: "lenet-small", Batch: 100, Epochs: 8, Chains: 1}
	sampled := base
	sampled.Prior, sampled.Temperature, sampled.BurnIn, sampled.Samples = gaussian, one, new(3), 10
	collected, drawn := sampled, sampled
	collected.Temperature, drawn.Temperature, drawn.BurnIn = nil, nil, nil
	walked := sampled
	walked.Batch, walked.Epochs, walked.BurnIn = 0, 2000, new(750)
	sampled.Weights = StepSize
	for text, want := range map[string]struct {
		spec     Spec
		schedule string
	}{
		"sgld": {sampled, "constant:0.2"}, "psgld": {sampled, "constant:0.002"}, "sghmc:0.2,0.1": {sampled, "constant:0.02"},
		"swag": {collected, "constant:0.05"}, "bbb:0.1": {drawn, "constant:0.001"}, "mc-dropout": {drawn, "cosine:0.1,0"}, "laplace": {drawn, "cosine:0.1,0"},
		"momentum:0.95": {base, "constant:0.01"}, "adadelta": {base, ""}, "mala": {walked, ""},
	} {
		want.spec.Method = methodOf(t, text)
		if want.schedule != "" {
			schedule, err := optimizers.ParseSchedule(want.schedule)
			must(t, err)
			want.spec.Schedule = schedule
		}
		got, err := Spec{Method: want.spec.Method}.Resolve()
		must(t, err)
		if diff := differ(want.spec, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, k := range registry {
		s, err := taught(Spec{Method: k.method, Chains: 2, Epochs: 80}).Resolve()
		must(t, err)
		if (s.Schedule == nil) != (k.schedule == nil) {
			t.Errorf("%s: schedule %v", k.name, s.Schedule)
		}
		again, err := s.Resolve()
		if diff := differ(s, again); err != nil || diff != "" {
			t.Errorf("%s: resolved again: %s (%v)", k.name, diff, err)
		}
		text, err := json.Marshal(s)
		must(t, err)
		var read Spec
		must(t, json.Unmarshal(text, &read))
		if diff := differ(s, read); diff != "" {
			t.Errorf("%s: read from %s: %s", k.name, text, diff)
		}
	}
}

// Samplers make smaller steps in networks wider than the default one; optimizers and approximations
// do not. In cycles they begin with larger ones.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		method string
		change Spec
		size   int
		want   langevin.Plan
	}{
		{"sgld", Spec{}, 60000, langevin.Plan{Steps: 4800, BurnIn: 1800, Thinning: 300}},
		{"sgld", Spec{}, 333, langevin.Plan{Steps: 26, BurnIn: 9, Thinning: 1}},
		{"swag:5", Spec{}, 60000, langevin.Plan{Steps: 4800, BurnIn: 1800, Thinning: 300}},
		{"bbb", Spec{}, 60000, langevin.Plan{Steps: 4800, BurnIn: 4799, Thinning: 1}},
		{"sgd", Spec{}, 100, langevin.Plan{Steps: 8, BurnIn: 7, Thinning: 1}},
		{"sghmc", Spec{Cycles: 4}, 60000, langevin.Plan{Steps: 4800, BurnIn: 600, Thinning: 240, Cycles: 4}},
		{"hmc:5", Spec{Batch: 40, Epochs: 400, BurnIn: new(200)}, 40, langevin.Plan{Steps: 400, BurnIn: 200, Thinning: 20}},
	} {
		s := c.change
		s.Method = methodOf(t, c.method)
		s, err := s.Resolve()
		must(t, err)
		course, err := kindOf(s.Method)
		must(t, err)
		got, rates, err := s.plan(course, c.size)
		if err != nil || got != c.want || len(rates) != got.Steps {
			t.Errorf("%s on %d: %+v with %d rates, want %+v (%v)", c.method, c.size, got, len(rates), c.want, err)
		}
		if c.change.Cycles == 4 && (rates[0] != 0.04 || rates[1200] != 0.04 || !(rates[1199] < 1e-6)) {
			t.Errorf("rates %v, %v, %v at the ends of a cycle", rates[0], rates[1199], rates[1200])
		}
	}
}

// Specifications that are invalid, and settings that would have no effect, are refused.
func TestInvalidSpecs(t *testing.T) {
	m := func(text string) Method { return methodOf(t, text) }
	for want, s := range map[string]Spec{
		"batch must be at least 1, got -1":                               {Batch: -1},
		"epochs must be at least 1, got -1":                              {Epochs: -1},
		"chains must be at least 1, got -2":                              {Chains: -2},
		"chains must be at most 65535, got 70000":                        {Chains: 70000},
		"subset must be at least 1, got -1":                              {Subset: -1},
		"samples must be at least 1, got -1":                             {Samples: -1},
		"temperature must be finite and at least 0, got NaN":             {Temperature: new(math.NaN())},
		"at least 0, got -1":                                             {Temperature: new(-1.0)},
		"at least 0, got +Inf":                                           {Temperature: new(math.Inf(1))},
		"cycles must be 1 to 10, the number of epochs, got 11":           {Cycles: 11},
		"cycles must be 1 to 10, the number of epochs, got -1":           {Cycles: -1},
		"anchor must be 1 to 8, the number of epochs, got 9":             {Anchor: 9},
		"burn-in is 8 of 8 epochs":                                       {Epochs: 8, BurnIn: new(8)},
		"burn-in is -1 of 8 epochs":                                      {BurnIn: new(-1)},
		"burn-in is 0 of 1 epochs, but psgld adapts":                     {Method: m("psgld"), Epochs: 1},
		"burn-in is 2 of 2 epochs":                                       {Epochs: 8, Cycles: 4, BurnIn: new(2)},
		"Friction must be above 0 and at most 1, got 2":                  {Method: m("sghmc:2")},
		"Decay must be at least 0 and below 1, got 2":                    {Method: m("momentum:2")},
		"Epsilon must be above 0 and normal in float32, got NaN":         {Method: m("adam:0.9,0.999,nan")},
		"Alpha must be at least 0 and below 1, got 1":                    {Method: m("psgld:1")},
		`"exact", got "dance"`:                                           {Method: m("psgld:gamma=dance")},
		"Rate must be between 0 and 1, got 1":                            {Method: m("mc-dropout:1")},
		"Rank must be at least 2, or 0 for":                              {Method: m("swag:1")},
		"InitialStd must be positive, got 0":                             {Method: m("bbb:0")},
		"LeapfrogSteps must be":                                          {Method: m("hmc:0")},
		"MaxDepth must be 1 to 30, or 0 for 10, got 31":                  {Method: m("nuts:max-depth=31")},
		"nuts: TargetAcceptance must be below 1":                         {Method: m("nuts:1")},
		"nuts: temperature must be positive, got 0":                      {Method: m("nuts"), Temperature: new(0.0)},
		"nuts: burn-in is 0 epochs of one step each, must be at least":   {Method: m("nuts"), BurnIn: new(0)},
		"mcmc.NUTS has a warm-up, which is a Spec's burn-in":             {Method: mcmc.NUTS{Warmup: 10}},
		"schedule does not apply to nuts":                                {Method: m("nuts"), Schedule: optimizers.Constant{Rate: 1}},
		"thinning applies to ":                                           {Method: m("nuts"), Thinning: 2},
		"mala: temperature must be positive, got 0":                      {Method: m("mala"), Temperature: new(0.0)},
		"burn-in is 19 epochs of one step each, must be at least the 20": {Method: m("hmc"), Epochs: 100, BurnIn: new(19)},
		"ensemble: chains must be at least 2, got 1":                     {Method: m("ensemble"), Chains: 1},
		`weights must be equal or step-size, got "even"`:                 {Weights: "even"},
		"RATE must":                     {Schedule: optimizers.Constant{Rate: -1}},
		"scale must be":                 {Prior: new(langevin.Gaussian(-1))},
		"at least 2":                    {Temperatures: []float64{1}},
		"temperatures must be positive": {Temperatures: []float64{2, 1}},
		"temperature must be 1, the first of temperatures 1,2, got 2":  {Temperatures: []float64{1, 2}, Temperature: new(2.0)},
		"replica exchange cannot be combined with cycles or an anchor": {Temperatures: []float64{1, 2}, Cycles: 2},
		"prior applies to ":                           {Method: m("adam"), Prior: new(langevin.Flat())},
		"burn-in applies to ":                         {Method: m("adam"), BurnIn: new(1)},
		"samples applies to ":                         {Method: m("adam"), Samples: 1},
		"anchor applies to ":                          {Method: m("adam"), Anchor: 1},
		"not to matched-friction":                     {Method: m("matched-friction"), Anchor: 1},
		"order applies to ":                           {Method: m("matched-friction"), Symmetric: true},
		"cycles applies to ":                          {Method: m("swag"), Cycles: 2},
		"not to ensemble":                             {Method: m("ensemble"), Chains: 2, Samples: 3},
		"schedule does not apply to adadelta":         {Method: m("adadelta"), Schedule: optimizers.Constant{Rate: 1}},
		"schedule does not apply to mala":             {Method: m("mala"), Schedule: optimizers.Constant{Rate: 1}},
		"only one of Network and Layers may be given": {Network: "lenet", Layers: layers.Sequential{layers.Flatten{}}},
	} {
		_, err := s.Resolve()
		wantInvalid(t, want, err, want)
		if err != nil && strings.Count(err.Error(), "pollen: ") > 1 {
			t.Errorf("%q says pollen twice", err)
		}
	}
}

// The errors for an unknown method and for a setting that does not apply list the right methods, in
// any order.
func TestErrorsListMethods(t *testing.T) {
	_, err := ParseMethod("dance")
	wantMethods(t, err, `there are (.*)$`, func(methodKind) bool { return true })

	for _, c := range []struct {
		setting, method string
		spec            Spec
		applies         func(methodKind) bool
	}{
		{"temperature", "sgd", Spec{Temperature: new(1.0)}, isSampler},
		{"temperature", "bbb", Spec{Temperature: new(1.0)}, isSampler},
		{"temperatures", "baoab", Spec{Temperatures: []float64{1, 2}}, func(k methodKind) bool {
			s, ok := k.(minibatchKind)
			return ok && !langevin.HasMomentum(s.sampler)
		}},
		{"burn-in", "mc-dropout", Spec{BurnIn: new(1)}, func(k methodKind) bool {
			_, ok := k.(SWAG)
			return ok || isSampler(k)
		}},
	} {
		c.spec.Method = methodOf(t, c.method)
		_, err := c.spec.Resolve()
		wantMethods(t, err, "pollen: "+c.setting+" applies to (.*), not to "+c.method, c.applies)
	}
}

func isSampler(k methodKind) bool {
	switch k.(type) {
	case minibatchKind, fullBatchKind, autoKind:
		return true
	}
	return false
}

// wantMethods compares the names that an error lists, which pattern captures, with the methods
// whose kinds are wanted.
func wantMethods(t *testing.T, err error, pattern string, wanted func(methodKind) bool) {
	t.Helper()
	var want []string
	for _, k := range registry {
		kind, err := kindOf(k.method)
		must(t, err)
		if wanted(kind) {
			want = append(want, k.name)
		}
	}
	match := regexp.MustCompile(pattern).FindStringSubmatch(fmt.Sprint(err))
	if match == nil {
		t.Errorf("error %v, want a match of %q", err, pattern)
		return
	}
	got := strings.Split(match[1], ", ")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%v: lists %v, want %v", err, got, want)
	}
}

func TestParsePriors(t *testing.T) {
	for text, want := range map[string]map[string]langevin.Prior{
		"a=flat": {"a": langevin.Flat()},
		"a.bias=gaussian:0.3/conv1=student-t:3,0.1": {"conv1": langevin.StudentT(3, 0.1), "a.bias": langevin.Gaussian(0.3)},
	} {
		got, err := parsePriors(text)
		if err != nil || !maps.Equal(got, want) || joinPriors(got) != text {
			t.Errorf("%q: %v (%v), want %v; as text %q", text, got, err, want, joinPriors(got))
		}
	}
	for _, text := range []string{"", "flat", "a=", "=flat", "a=flat/", "a=flat/a=flat", "a=gaussian:x", "a=flat b=flat"} {
		if got, err := parsePriors(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
	if text := joinPriors(nil); text != "" {
		t.Errorf("no priors are %q", text)
	}
}

func anyPriors(t *rapid.T) map[string]langevin.Prior {
	return rapid.MapOfN(rapid.SampledFrom([]string{"conv1", "linear2.bias"}), rapid.SampledFrom([]langevin.Prior{
		langevin.Flat(), langevin.FanIn(1. / 3), langevin.StudentT(3, 0.1),
	}), 1, 2).Draw(t, "priors")
}

func TestCustomarySchedules(t *testing.T) {
	for _, c := range []struct {
		network, method, want string
		cycles                int
	}{
		{"lenet-small", "sgld", "constant:0.2", 0}, {"mnist-64-64-256", "sgld", "constant:0.05", 0},
		{"mlp-400-400", "psgld", "constant:0.0005", 0}, {"lenet", "ksgld", "constant:0.0125", 0},
		{"resnet20-frn", "baoab:0.2", "constant:0.005", 0}, {"lenet", "sgd", "warmup:50,constant:0.1", 0},
		{"lenet", "swag", "warmup:50,constant:0.05", 0}, {"lenet", "mc-dropout", "warmup:50,cosine:0.1,0", 0},
		{"lenet", "momentum", "constant:0.01", 0}, {"lenet-small", "mc-dropout", "cosine:0.1,0", 0},
		{"lenet", "sgld", "cyclical:0.1,2", 2}, {"lenet-small", "sghmc", "cyclical:0.04,4", 4},
	} {
		s, err := Spec{Network: c.network, Method: methodOf(t, c.method), Cycles: c.cycles}.Resolve()
		if err != nil || s.Schedule.String() != c.want {
			t.Errorf("%s, %s: %v, want %s (%v)", c.network, c.method, s.Schedule, c.want, err)
		}
	}
	for _, c := range []struct {
		spec                    Spec
		examples, batch, epochs int
		schedule                string
	}{
		{Spec{}, 60_000, 100, 8, "constant:0.2"}, {Spec{}, 12_500, 100, 8, "constant:0.2"}, {Spec{}, 10_000, 100, 10, "constant:0.2"},
		{Spec{}, 2500, 100, 40, "constant:0.1"}, {Spec{}, 129, 12, 94, "constant:0.023"}, {Spec{}, 5, 1, 200, "constant:0.0045"},
		{Spec{Subset: 2500}, 60_000, 100, 40, "constant:0.1"}, {Spec{Batch: 50}, 1000, 50, 50, "constant:0.063"},
		{Spec{Epochs: 3}, 100, 10, 3, "constant:0.02"}, {Spec{Method: methodOf(t, "adam")}, 100, 10, 100, "constant:0.001"},
		{Spec{BurnIn: new(7)}, 60_000, 100, 8, "constant:0.2"}, {Spec{BurnIn: new(30)}, 60_000, 100, 80, "constant:0.2"},
		{Spec{Cycles: 2}, 2500, 100, 40, "cyclical:0.2,2"}, {Spec{Network: "lenet"}, 2500, 100, 40, "constant:0.025"},
	} {
		if c.spec.Method == nil {
			c.spec.Method = langevin.SGLD{}
		}
		s, err := c.spec.resolve(c.examples)
		if err != nil || s.Batch != c.batch || s.Epochs != c.epochs || s.Schedule.String() != c.schedule {
			t.Errorf("%+v, %d examples: batch %d, %d epochs, %v, want %d, %d, %s (%v)", c.spec, c.examples, s.Batch, s.Epochs, s.Schedule,
				c.batch, c.epochs, c.schedule, err)
		}
	}
	s, err := Spec{Layers: layers.Sequential{layers.Linear{Outputs: 2}}, Method: langevin.SGLD{}}.Resolve()
	if err != nil || s.Network != "" || s.Schedule.String() != "constant:0.05" {
		t.Errorf("a custom network: %+v (%v)", s, err)
	}
}

// halving is a custom layer.
type halving struct{ layers.Linear }

func (h halving) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return h.Linear.Apply(b, x) }

// A network with a custom layer is kept by the name under which it is registered.
func TestRegisterNetwork(t *testing.T) {
	own := layers.Sequential{layers.Flatten{}, halving{layers.Linear{Outputs: 3}}}
	data := squares(t, 60, 3, 1)
	spec := Spec{Layers: own, Method: langevin.SGLD{}, Schedule: optimizers.Constant{Rate: 0.05}, Batch: 20, Epochs: 4, Samples: 2}
	dir := filepath.Join(t.TempDir(), "run")
	_, err := Fit(context.Background(), spec, trainOn(data), dir)
	wantInvalid(t, "not registered", err, "RegisterNetwork")

	defer func() { delete(ownNetworks, "own") }()
	must(t, RegisterNetwork("own", own))
	spec.Layers = layers.Sequential{}
	_, err = Fit(context.Background(), spec, trainOn(data), dir)
	wantInvalid(t, "no layers", err, "Layers must be at least 1")
	spec.Layers, spec.Network = nil, "own"
	_, err = Fit(context.Background(), spec, trainOn(data), dir)
	must(t, err)
	run, err := Open(dir)
	must(t, err)
	if _, err := run.Predict(context.Background(), data); err != nil {
		t.Error(err)
	}
	wantInvalid(t, "again", RegisterNetwork("own", own), `"own" already`)
	wantInvalid(t, "a known name", RegisterNetwork("lenet", own), `"lenet" already`)
	wantInvalid(t, "a family's name", RegisterNetwork("mlp-5", own), `"mlp-5" already`)
	wantInvalid(t, "no name", RegisterNetwork("", own), "a word for a name")
	wantInvalid(t, "two words", RegisterNetwork("my own", own), "a word for a name")
	wantInvalid(t, "no layers", RegisterNetwork("empty", nil), "at least 1 layer")
}

// Build uses the defaults of fields that a specification leaves out.
func TestBuildDefaults(t *testing.T) {
	network, err := Spec{}.Build(7)
	must(t, err)
	want, err := layers.New("lenet-small", 7)
	must(t, err)
	if !reflect.DeepEqual(network, want) {
		t.Errorf("got %v, want lenet-small", network)
	}
}

// TestExchangeEnergies: an energy averages minibatches of one epoch, or all of them if they are
// few. If the data are not a multiple of the minibatch, it does so only if the minibatches fit
// wherever an epoch begins.
func TestExchangeEnergies(t *testing.T) {
	for _, c := range []struct{ examples, batch, minibatches, size int }{
		{60000, 100, 10, 100}, {1000, 100, 10, 100}, {400, 100, 4, 100}, {1234, 100, 10, 100}, {1099, 100, 10, 0}, {450, 100, 10, 0}, {100, 100, 1, 0},
	} {
		e := Spec{Temperatures: []float64{1, 2}, Batch: c.batch}.exchange(c.examples)
		if err := e.Validate(); err != nil || e.Minibatches != c.minibatches || e.BatchSize != c.size {
			t.Errorf("%d examples in minibatches of %d: %d of size %d, %v, want %d of size %d",
				c.examples, c.batch, e.Minibatches, e.BatchSize, err, c.minibatches, c.size)
		}
	}
}

// TestEmptySettings: an empty text, as of an unset variable, is an error rather than the default.
func TestEmptySettings(t *testing.T) {
	for _, setting := range Settings() {
		var s Spec
		err := s.Set(setting.Name, "")
		if !errors.As(err, new(*InvalidError)) || !strings.Contains(err.Error(), setting.Name+" must not be empty") {
			t.Errorf("%s: %v", setting.Name, err)
		}
	}
}

// Errors of settings name the package first, and the setting once.
func TestSettingErrors(t *testing.T) {
	for _, setting := range Settings() {
		var s Spec
		err := s.Set(setting.Name, "0.1:dance=")
		if err != nil && strings.Contains(err.Error(), setting.Name+": "+setting.Name) {
			t.Errorf("error %q names %s twice", err, setting.Name)
		}
		if err != nil && strings.HasPrefix(err.Error(), setting.Name) {
			t.Errorf("error %q does not begin with the package", err)
		}
	}
}
