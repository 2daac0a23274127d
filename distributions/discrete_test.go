package distributions

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

func TestBernoulli(t *testing.T) {
	var x, logits, want, slopes []float64
	for _, l := range []float64{-700, -40, -3, -1e-9, 0, 0.2, 5, 30, 700} {
		for _, v := range []float64{0, 1} {
			sign := 2*v - 1
			x, logits = append(x, v), append(logits, l)
			want = append(want, -math.Log1p(math.Exp(-math.Abs(l)))-max(0, -sign*l))
			slopes = append(slopes, sign/(1+math.Exp(sign*l)))
		}
	}
	p := newProgram(t, tensor.Float64, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Bernoulli{Logits: Node(in[0])}.LogProb(b, b.Table("data", x))
	})
	compare(t, "log probability", p.step(logits), want, always(0), 1e-14)
	compare(t, "gradient of logits", p.gradient(0), slopes, always(0), 1e-14)
	for _, l := range []float64{0, -1.5} {
		p := sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node {
			return Bernoulli{Logits: Number(l)}.LogProb(b, b.Table("data", []float64{0, 1}))
		})
		want := []float64{-math.Log(1 + math.Exp(l)), -math.Log(1 + math.Exp(-l))}
		compare(t, fmt.Sprint("with the number ", l), p.step(), want, always(0), 1e-14)
	}
}

func TestCategorical(t *testing.T) {
	const classes = 5
	labels := []float64{0, 4, 2, 2, 1, 3, 0}
	for _, shape := range []tensor.Shape{{len(labels), classes}, {classes}} {
		logits := make([]float64, shape.Elements())
		for i := range logits {
			logits[i] = 3 * math.Sin(float64(7*i*i+i))
		}
		p := newProgram(t, tensor.Float64, []tensor.Shape{shape}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return Categorical{Logits: in[0]}.LogProb(b, labelNodes(b, labels))
		})
		writeLabels(t, p, labels)
		reference := func(logits []float64) []float64 {
			var y []float64
			for row, label := range labels {
				z := logits[row*classes%len(logits):][:classes]
				total := 0.0
				for _, v := range z {
					total += math.Exp(v)
				}
				y = append(y, z[int(label)]-math.Log(total))
			}
			return y
		}
		compare(t, "log probability", p.step(logits), reference(logits), always(1e-14), 1e-14)
		got := p.gradient(0)
		for i := range logits {
			moved := append([]float64(nil), logits...)
			slope := 0.0
			for _, side := range []float64{1, -1} {
				moved[i] = logits[i] + side*1e-5
				for _, y := range reference(moved) {
					slope += side * y / 2e-5
				}
			}
			compare(t, fmt.Sprint("gradient of logit ", i), got[i:i+1], []float64{slope}, always(1e-8), 0)
		}
	}
}

// labelNodes are an input "labels" of class indices.
func labelNodes(b *graph.Builder, labels []float64) *graph.Node {
	return b.Data("labels", tensor.Int32, len(labels))
}

func writeLabels(t *testing.T, p *program, labels []float64) {
	t.Helper()
	classes := make([]int32, len(labels))
	for i, label := range labels {
		classes[i] = int32(label)
	}
	if err := graph.Write(p.session, "labels", 0, 0, classes); err != nil {
		t.Fatal(err)
	}
}

func TestCategoricalOfAForeignLabelIsNaN(t *testing.T) {
	labels := []float64{0, -1, 3, 2}
	p := newProgram(t, tensor.Float32, []tensor.Shape{{3}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Categorical{Logits: in[0]}.LogProb(b, labelNodes(b, labels))
	})
	writeLabels(t, p, labels)
	for i, y := range p.step([]float64{1, 2, 3}) {
		if bad := labels[i] < 0 || labels[i] > 2; bad != math.IsNaN(y) {
			t.Errorf("label %v of 3 has log probability %v", labels[i], y)
		}
	}
}

func TestMixture(t *testing.T) {
	x := []float64{-1e3, -40, -2, -1, 0, 0.5, 1, 3, 80, 1e3}
	location := []float64{-2, 0.6, 1}
	logits := []float64{0.3, -1, 1.2}
	components := func(v []Value) []Distribution {
		return []Distribution{
			Normal{Mean: v[0], Std: Number(0.5)},
			Laplace{Location: v[1], Scale: Number(2)},
			Normal{Mean: v[2], Std: Number(3)},
		}
	}
	// A sum of exponentials with the largest taken out.
	reference := func(x float64, m, logits []float64) float64 {
		z := func(i int, scale float64) float64 { return (x - m[i]) / scale }
		terms := []float64{
			-z(0, 0.5)*z(0, 0.5)/2 - math.Log(0.5) - math.Log(2*math.Pi)/2,
			-math.Abs(z(1, 2)) - math.Log(4),
			-z(2, 3)*z(2, 3)/2 - math.Log(3) - math.Log(2*math.Pi)/2,
		}
		top, sum, weights := math.Inf(-1), 0.0, 0.0
		for _, term := range terms {
			top = max(top, term)
		}
		for i, term := range terms {
			sum += math.Exp(term - top + logits[i])
			weights += math.Exp(logits[i])
		}
		return top + math.Log(sum/weights)
	}
	var want, equal []float64
	for _, v := range x {
		want = append(want, reference(v, location, logits))
		equal = append(equal, reference(v, location, make([]float64, 3)))
	}

	p := newProgram(t, tensor.Float64, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Mixture{Components: components(numbers(location)), Logits: numbers(logits)}.LogProb(b, in[0])
	})
	compare(t, "with numbers", p.step(x), want, always(1e-14), 1e-14)
	p = newProgram(t, tensor.Float64, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Mixture{Components: components(numbers(location))}.LogProb(b, in[0])
	})
	compare(t, "with equal weights", p.step(x), equal, always(1e-14), 1e-14)

	// Means and logits as nodes, one of them a number, each repeated for every x, so that each
	// gradient belongs to a single element.
	n := len(x)
	shapes := []tensor.Shape{{n}, {n}, {n}, {n}, {n}, {n}}
	columns := [][]float64{x}
	for _, v := range append(append([]float64(nil), location...), logits[1], logits[2]) {
		columns = append(columns, filled(n, v))
	}
	p = newProgram(t, tensor.Float64, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		weights := []Value{Number(logits[0]), Node(in[4]), Node(in[5])}
		return Mixture{Components: components(nodes(in[1:4])), Logits: weights}.LogProb(b, in[0])
	})
	compare(t, "with nodes", p.step(columns...), want, always(1e-14), 1e-14)
	var got [][]float64
	for i := range columns {
		got = append(got, p.gradient(i))
	}
	for i := range columns {
		slopes, rounding := p.slopes(i, filled(n, 0x1p-10), columns...)
		compare(t, fmt.Sprint("gradient of input ", i), got[i], slopes, func(i int) float64 { return 1e-8 + rounding[i] }, 1e-8)
	}
}

func TestMixtureIntegratesToOne(t *testing.T) {
	d := Mixture{
		Components: []Distribution{Normal{Mean: Number(-3), Std: Number(0.7)}, StudentT{DoF: Number(3), Scale: Number(2)}},
		Logits:     []Value{Number(-2), Number(0.5)},
	}
	sum := total(t, d.LogProb, func(t float64) (float64, float64) { return realLine(t, []float64{0, 1}) })
	if !(math.Abs(sum-1) < 1e-6) {
		t.Errorf("integrates to %v", sum)
	}
}

func TestTotal(t *testing.T) {
	p := newProgram(t, tensor.Float64, []tensor.Shape{{2, 3}, {}, {4}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Total(b, in[0], in[1], b.Apply(op.Squared{}, in[2]))
	})
	compare(t, "total", p.step([]float64{1, 2, 3, 4, 5, 6}, []float64{10}, []float64{1, 2, 3, 4}), []float64{61}, always(0), 0)
	compare(t, "gradient", p.gradient(2), []float64{2, 4, 6, 8}, always(0), 0)
}
