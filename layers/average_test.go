package layers

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestAverage: the copies have separate parameters, named by the copy, and the layers of each copy
// are numbered from 1.
func TestAverage(t *testing.T) {
	network := Average{Copies: 3, Body: Sequential{Linear{Outputs: 2}, Linear{Name: "named", Outputs: 2, NoBias: true}}}
	b, _, _ := build(graph.Training, Sequential{Linear{Outputs: 4}, network, Linear{Outputs: 2, NoBias: true}}, tensor.Shape{4})
	var want []string
	want = append(want, weights("linear1")...)
	for _, prefix := range []string{"copy1.", "copy2.", "copy3."} {
		want = append(append(want, weights(prefix+"linear1")...), prefix+"named.weight")
	}
	want = append(want, "linear2.weight")
	if d := cmp.Diff(want, parameterNames(b)); d != "" || b.Err() != nil {
		t.Errorf("parameters (-want +got): %v\n%s", b.Err(), d)
	}
}

// TestAverageIsTheMean compares an average of linear layers with the layer whose weights are the
// mean of theirs.
func TestAverageIsTheMean(t *testing.T) {
	const inputs = 5
	b, x, y := build(graph.Training, Average{Copies: 3, Body: Sequential{Linear{Outputs: 1, NoBias: true}}}, tensor.Shape{inputs})
	b.Output("y", y)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	images := []float64{1, -2, 3, 0.5, 4, -1, 2, 0, 7, 0.25}
	if err := graph.Write(session, x.Name(), 0, 0, images); err != nil {
		t.Fatal(err)
	}
	if err := session.Run(1); err != nil {
		t.Fatal(err)
	}
	want, weight := make([]float64, 2), make([]float64, inputs)
	for _, name := range []string{"copy1.linear1.weight", "copy2.linear1.weight", "copy3.linear1.weight"} {
		if err := graph.Read(session, name, 0, 0, weight); err != nil {
			t.Fatal(err)
		}
		for i, w := range weight {
			want[0] += w * images[i] / 3
			want[1] += w * images[inputs+i] / 3
		}
	}
	got := make([]float64, 2)
	if err := graph.Read(session, "y", 0, 0, got); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("output %d is %v, want %v", i, got[i], want[i])
		}
	}
}
