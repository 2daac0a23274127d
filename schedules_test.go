package pollen

import (
	"testing"

	"github.com/pollen-ml/pollen/layers"
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
