package distributions

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestFaults(t *testing.T) {
	one, nan := Number(1), Number(math.NaN())
	at := func(d Distribution) func(b *graph.Builder, x *graph.Node) {
		return func(b *graph.Builder, x *graph.Node) { d.LogProb(b, x) }
	}
	for name, c := range map[string]struct {
		build func(b *graph.Builder, x *graph.Node)
		want  string
	}{
		"no deviation":       {at(Normal{}), "distributions: normal: Std must be positive, got 0"},
		"NaN":                {at(Normal{Mean: nan, Std: one}), "distributions: normal: Mean must be finite, got NaN"},
		"infinite deviation": {at(Normal{Std: Number(math.Inf(1))}), "normal: Std must be finite, got +Inf"},
		"NaN deviation":      {at(Normal{Std: nan}), "normal: Std must be finite, got NaN"},
		"negative scale":     {at(Laplace{Scale: Number(-2)}), "distributions: laplace: Scale must be positive, got -2"},
		"no freedom":         {at(StudentT{Scale: one}), "student-t: DoF must be positive, got 0"},
		"no rate":            {at(Exponential{}), "exponential: Rate must be positive, got 0"},
		"no shape":           {at(Gamma{Rate: one}), "gamma: Shape must be positive, got 0"},
		"no half deviation":  {at(HalfNormal{}), "distributions: half-normal: Std must be positive, got 0"},
		"no half scale":      {at(HalfStudentT{DoF: one}), "distributions: half-student-t: Scale must be positive, got 0"},
		"no width":           {at(Uniform{Low: 1, High: 1}), "uniform: Low and High must be finite, Low below High, got 1 and 1"},
		"no mean of counts":  {at(Poisson{}), "poisson: Rate must be positive, got 0"},
		"no shape of rates":  {at(NegativeBinomial{Mean: one}), "negative binomial: Shape must be positive, got 0"},
		"no concentration":   {at(Dirichlet{}), "dirichlet: Concentration must be positive, got 0"},
		"other vectors": {func(b *graph.Builder, _ *graph.Node) {
			Dirichlet{Concentration: Node(b.Parameter("c", nil, 2))}.LogProb(b, b.Parameter("p", nil, 5, 3))
		}, "dirichlet: add: "},
		"a scalar as vector": {func(b *graph.Builder, _ *graph.Node) { Simplex(b, b.Parameter("s", nil)) },
			"simplex: the argument must have shape [K] or [B K], got []"},
		"no B":            {at(Beta{A: one}), "beta: B must be positive, got 0"},
		"infinite logits": {at(Bernoulli{Logits: Number(math.Inf(-1))}), "bernoulli: Logits must be finite, got -Inf"},
		"nil node":        {at(Normal{Mean: Node(nil), Std: one}), "normal: Mean must not be a nil node"},
		"nil argument":    {func(b *graph.Builder, _ *graph.Node) { Normal{Std: one}.LogProb(b, nil) }, "normal: the argument must not be a nil node"},
		"labels as argument": {func(b *graph.Builder, _ *graph.Node) {
			Normal{Std: one}.LogProb(b, b.Data("labels", tensor.Int32, 3))
		}, "normal: the argument must be a node of float64, as the graph, got int32"},
		"data of float32": {func(b *graph.Builder, x *graph.Node) {
			Normal{Mean: Node(b.Data("mean", tensor.Float32)), Std: one}.LogProb(b, x)
		}, "normal: Mean must be a node of float64, as the graph, got float32"},
		"shapes": {func(b *graph.Builder, x *graph.Node) {
			Normal{Mean: Node(b.Parameter("mean", nil, 4)), Std: one}.LogProb(b, x)
		}, "graph: normal: subtract: extents, aligned at the last axis"},
		"floats as labels": {func(b *graph.Builder, x *graph.Node) { Categorical{Logits: x}.LogProb(b, x) },
			"categorical: the argument must hold labels of int32, got float64"},
		"no logits": {func(b *graph.Builder, _ *graph.Node) { Categorical{}.LogProb(b, b.Data("labels", tensor.Int32, 3)) },
			"categorical: Logits must not be a nil node"},
		"labels of another batch": {func(b *graph.Builder, _ *graph.Node) {
			Categorical{Logits: b.Parameter("logits", nil, 4, 5)}.LogProb(b, b.Data("labels", tensor.Int32, 3))
		}, "categorical: log probability: inputs must be logits"},
		"no components": {at(Mixture{}), "mixture: there must be at least one component, and a logit for each or none, got 0 and 0"},
		"logits missing": {at(Mixture{Components: []Distribution{Normal{Std: one}, Normal{Std: one}}, Logits: []Value{one}}),
			"mixture: there must be at least one component, and a logit for each or none, got 2 and 1"},
		"nil component":      {at(Mixture{Components: []Distribution{nil}}), "mixture: component 0 must not be nil"},
		"fault in component": {at(Mixture{Components: []Distribution{Normal{}}}), "normal: Std must be positive, got 0"},
		"no bijection":       {at(Transformed{Base: Normal{Std: one}}), "transformed: Base and Bijection must not be nil, got {"},
		"no base":            {at(Transformed{Bijection: Exp{}}), "transformed: Base and Bijection must not be nil, got <nil>"},
		"base without samples": {func(b *graph.Builder, _ *graph.Node) {
			Transformed{Base: StudentT{DoF: one, Scale: one}, Bijection: Exp{}}.RSample(b, 3)
		}, "transformed: sample: Base must be Reparameterised, got distributions.StudentT"},
		"interval": {func(b *graph.Builder, x *graph.Node) { Interval{Low: 1}.Forward(b, x) },
			"interval: Low and High must be finite, Low below High, got 1 and 0"},
		"open interval": {func(b *graph.Builder, x *graph.Node) { Interval{High: math.Inf(1)}.Inverse(b, x) },
			"interval: Low and High must be finite, Low below High, got 0 and +Inf"},
		"no scale":  {func(b *graph.Builder, x *graph.Node) { Affine{Shift: one}.LogDeterminant(b, x) }, "affine: Scale must not be 0"},
		"NaN shift": {func(b *graph.Builder, x *graph.Node) { Affine{Shift: nan, Scale: one}.Forward(b, x) }, "affine: Shift must be finite, got NaN"},
		"no terms":  {func(b *graph.Builder, _ *graph.Node) { Total(b) }, "distributions: total: there must be at least one term"},
		"wider parameter": {func(b *graph.Builder, x *graph.Node) { Normal{Mean: Node(x), Std: one}.RSample(b) },
			"normal: sample: must have shape [] after broadcasting, got [3]"},
		"empty sample": {func(b *graph.Builder, _ *graph.Node) { Normal{Std: one}.RSample(b, 0, 3) },
			"normal: sample: must have shape [0 3] after broadcasting, got [3]"},
		"negative sample": {func(b *graph.Builder, _ *graph.Node) { Exponential{Rate: one}.RSample(b, -1) }, "axis 0 must be at least 1, got -1"},
		"too many axes":   {func(b *graph.Builder, _ *graph.Node) { Laplace{Scale: one}.RSample(b, 1, 1, 1, 1, 1, 1, 2) }, "laplace: noise"},
	} {
		b := graph.New(tensor.Float64)
		x := b.Parameter("x", nil, 3)
		c.build(b, x)
		if b.Err() == nil || !strings.Contains(b.Err().Error(), c.want) {
			t.Errorf("%s: error is %v, want one with %q", name, b.Err(), c.want)
		}
	}
}

// After a fault, all calls return nil and keep the first error.
func TestFaultSticks(t *testing.T) {
	b := graph.New(tensor.Float32)
	x := b.Parameter("x", nil, 3)
	first := Normal{}.LogProb(b, x)
	err := b.Err()
	one := Number(1)
	value, logJacobian := Constrained(b, first, Interval{High: 1})
	vector, vectorJacobian := Simplex(b, first)
	for i, n := range []*graph.Node{
		first, value, logJacobian, vector, vectorJacobian, Total(b, first, value), Exponential{Rate: Node(value)}.RSample(b, 3),
		Mixture{Components: []Distribution{Laplace{Scale: one}, StudentT{DoF: one, Scale: Node(value)}}}.LogProb(b, value),
		Transformed{Base: Beta{A: one, B: one}, Bijection: Softplus{}}.LogProb(b, value), Bernoulli{Logits: one}.LogProb(b, value),
		Categorical{Logits: value}.LogProb(b, value), Gamma{Shape: Node(value), Rate: one}.LogProb(b, value),
		Affine{Scale: one}.LogDeterminant(b, value), Affine{Scale: Node(value)}.Inverse(b, value),
		Poisson{Rate: one}.LogProb(b, value), NegativeBinomial{Mean: Node(value), Shape: one}.LogProb(b, value),
		HalfNormal{Std: one}.RSample(b, 3), HalfStudentT{DoF: one, Scale: Node(value)}.LogProb(b, value),
		Uniform{High: 1}.LogProb(b, value), Uniform{High: 1}.RSample(b, 3), Dirichlet{Concentration: Node(value)}.LogProb(b, value),
	} {
		if n != nil {
			t.Errorf("node %d is %v, want nil", i, n)
		}
	}
	if b.Err() != err {
		t.Errorf("the error is %v, want the first, %v", b.Err(), err)
	}
}
