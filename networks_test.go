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
