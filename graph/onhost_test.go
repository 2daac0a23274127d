package graph_test

import (
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

func TestOnHost(t *testing.T) {
	b := graph.New(tensor.Float64)
	b.Output("y", b.Apply(op.ReLU{}, b.State("x", nil, 3)))
	var used *graph.Session
	y := make([]float64, 3)
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		used = s
		if err := graph.Write(s, "x", 0, 0, []float64{-1, 0, 2}); err != nil {
			return err
		}
		if err := s.Run(1); err != nil {
			return err
		}
		wantError(t, "an output", graph.Write(s, "y", 0, 0, y), "graph: y: an output cannot be written, only an input")
		return graph.Read(s, "y", 0, 0, y)
	})
	if err != nil || y[0] != 0 || y[1] != 0 || y[2] != 2 {
		t.Errorf("got %v, %v, want [0 0 2]", y, err)
	}
	if err := used.Run(1); err == nil {
		t.Error("the session still runs after its use")
	}
}

func TestOnHostReturnsTheFirstError(t *testing.T) {
	broken := graph.New(tensor.Float32)
	broken.Fail(errors.New("first"))
	if err := broken.OnHost(graph.LoadOptions{}, nil); err == nil || err.Error() != "first" {
		t.Errorf("got %v, want the builder's error", err)
	}
	b := graph.New(tensor.Float32)
	b.Output("y", b.Apply(op.ReLU{}, b.State("x", nil, 3)))
	wantError(t, "no use", b.OnHost(graph.LoadOptions{}, nil), "use must not be nil")
	if err := b.OnHost(graph.LoadOptions{}, func(*graph.Session) error { return errors.New("use") }); err == nil || err.Error() != "use" {
		t.Errorf("got %v, want the use's error", err)
	}
}
