package pollen

import (
	"context"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

func TestCustomarySchedules(t *testing.T) {
	for _, c := range []struct {
		network, method, want string
		cycles                int
	}{
		{"lenet-small", "sgld", "constant:0.2", 0}, {"mnist-64-64-256", "sgld", "constant:0.05", 0},
		{"mlp-400-400", "psgld", "constant:0.0005", 0}, {"lenet", "ksgld", "constant:0.0125", 0},
		{"resnet20-frn", "baoab:0.2", "constant:0.005", 0}, {"lenet", "sgd", "constant:0.1", 0},
		{"lenet", "swag", "constant:0.05", 0}, {"lenet", "mc-dropout", "cosine:0.1,0", 0},
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
		s, err := c.spec.resolve(c.examples)
		if err != nil || s.Batch != c.batch || s.Epochs != c.epochs || s.Schedule.String() != c.schedule {
			t.Errorf("%+v, %d examples: batch %d, %d epochs, %v, want %d, %d, %s (%v)", c.spec, c.examples, s.Batch, s.Epochs, s.Schedule,
				c.batch, c.epochs, c.schedule, err)
		}
	}
	s, err := Spec{Layers: layers.Sequential{layers.Linear{Outputs: 2}}}.Resolve()
	if err != nil || s.Network != "" || s.Schedule.String() != "constant:0.05" {
		t.Errorf("a network of one's own: %+v (%v)", s, err)
	}
}

// halving is a user's layer.
type halving struct{ layers.Linear }

func (h halving) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return h.Linear.Apply(b, x) }

// A network with a layer of one's own is kept by the name under which it is registered.
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
	wantInvalid(t, "no layers", err, "Layers are none")
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
	wantInvalid(t, "no name", RegisterNetwork("", own), "wants a word")
	wantInvalid(t, "two words", RegisterNetwork("my own", own), "wants a word")
	wantInvalid(t, "no layers", RegisterNetwork("empty", nil), "a layer at least")
}

// What a specification leaves out has its defaults in Build, too.
func TestBuildDefaults(t *testing.T) {
	network, err := Spec{}.Build(7)
	must(t, err)
	want, err := layers.New("lenet-small", 7)
	must(t, err)
	if !reflect.DeepEqual(network, want) {
		t.Errorf("got %v, want lenet-small", network)
	}
}

// TestExchangeEnergies: an energy is of minibatches of one epoch, and of all of them where they are
// few; where the data are no whole number of them, only if they fit wherever an epoch begins.
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
