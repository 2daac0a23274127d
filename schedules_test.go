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
	s, err := Spec{Layers: layers.Sequential{layers.Linear{Outputs: 2}}}.Resolve()
	if err != nil || s.Network != "" || s.Schedule.String() != "constant:0.05" {
		t.Errorf("a network of one's own: %+v (%v)", s, err)
	}
}
