package langevin_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// ksgldRow is the suite's row of KSGLD. The parameters of most of the suite's tests belong to no
// layer: the Rest moves them.
func ksgldRow() row {
	return row{
		name: "KSGLD, the rest by SGLD", rule: sgldRule, still: 1,
		sampler: langevin.KSGLD{Alpha: 0.6, Damping: 0.05, Refresh: 2, FreezeAt: 4, Rest: langevin.SGLD{}},
		plain:   func(decay float64) optimizers.Optimizer { return optimizers.SGD{WeightDecay: decay} },
	}
}

// convolved is a convolution of x [B C H W] with bias, whose loss is half the squared distance from
// y.
type convolved struct {
	batch, channels, height, width int
	layer                          layers.Conv2D
}

func (c convolved) build(b *graph.Builder) (loss *graph.Node) {
	shape := tensor.Shape{c.batch, c.channels, c.height, c.width}
	x := c.layer.Apply(b, b.Table("x", trial.NormalDraws(shape.Elements(), 51), shape...))
	out := graph.ShapeOf(x)
	return b.Apply(op.SquaredError{}, x, b.Table("y", trial.NormalDraws(out.Elements(), 52), out...))
}

// matrices are the layer's patches and the gradients of the mean loss, a row for each place of each
// example.
func (c convolved) matrices(weight, bias []float64) (patches, slopes *mat.Dense) {
	l, x := c.layer, trial.NormalDraws(c.batch*c.channels*c.height*c.width, 51)
	outHeight, outWidth := (c.height+2*l.Padding-l.Kernel)/l.Stride+1, (c.width+2*l.Padding-l.Kernel)/l.Stride+1
	terms, places := c.channels*l.Kernel*l.Kernel, outHeight*outWidth
	y := trial.NormalDraws(c.batch*l.Filters*places, 52)
	patches, slopes = mat.NewDense(c.batch*places, terms, nil), mat.NewDense(c.batch*places, l.Filters, nil)
	for at := range c.batch * places {
		b, p, q := at/places, at%places/outWidth, at%outWidth
		for i := range terms {
			channel, row, column := i/(l.Kernel*l.Kernel), p*l.Stride-l.Padding+i/l.Kernel%l.Kernel, q*l.Stride-l.Padding+i%l.Kernel
			if row >= 0 && row < c.height && column >= 0 && column < c.width {
				patches.Set(at, i, x[((b*c.channels+channel)*c.height+row)*c.width+column])
			}
		}
		for k := range l.Filters {
			prediction := bias[k] + mat.Dot(patches.RowView(at), mat.NewVecDense(terms, weight[k*terms:(k+1)*terms]))
			slopes.Set(at, k, (prediction-y[(b*l.Filters+k)*places+at%places])/float64(c.batch))
		}
	}
	return patches, slopes
}

// TestKSGLDConvolution compares the factors of a convolution's weights and bias, and their moves at
// temperature 0, with the formulas.
func TestKSGLDConvolution(t *testing.T) {
	const dataSize, h = 40, 0.01
	c := convolved{7, 3, 9, 8, layers.Conv2D{Name: "conv", Filters: 5, Kernel: 3, Stride: 2, Padding: 1}}
	b := graph.New(tensor.Float64)
	k := langevin.KSGLD{Alpha: 0.5, Damping: 0.02, Refresh: 1, FreezeAt: 3}
	if err := langevin.Attach(b, k, langevin.Posterior{DataSize: dataSize}, c.build(b), []float64{h}, []float64{0}); err != nil {
		t.Fatal(err)
	}
	s := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, 2)
	read := func(name string, rows, columns int) *mat.Dense {
		return mat.NewDense(rows, columns, trial.Values(t, s, name, 0, rows*columns))
	}
	check := func(name string, got, want mat.Matrix) {
		t.Helper()
		if d := largestDifference(got, want); !(d <= 1e-10) {
			t.Errorf("%s is off by %.2g of its size", name, d)
		}
	}
	outputs, terms := c.layer.Filters, c.channels*c.layer.Kernel*c.layer.Kernel
	var a, weightS, biasS *mat.Dense
	for step := range 5 {
		weight, bias := read("conv.weight", outputs, terms), read("conv.bias", outputs, 1)
		patches, slopes := c.matrices(weight.RawMatrix().Data, bias.RawMatrix().Data)
		rows, _ := patches.Dims()
		p, q := read("conv.weight.output whitener", outputs, outputs), read("conv.weight.input whitener", terms, terms)
		biasP := read("conv.bias.output whitener", outputs, outputs)
		trial.Advance(t, s, 1)

		places := float64(rows / c.batch)
		if step < k.FreezeAt {
			a = movedAverage(a, matrixProduct(patches.T(), patches), 1/float64(c.batch), k.Alpha)
			weightS = movedAverage(weightS, matrixProduct(slopes.T(), slopes), float64(c.batch)/places, k.Alpha)
			biasS = movedAverage(biasS, matrixProduct(slopes.T(), slopes), float64(c.batch), k.Alpha)
		}
		check("A", read("conv.weight.input factor", terms, terms), a)
		check("S", read("conv.weight.output factor", outputs, outputs), weightS)
		check("the bias's S", read("conv.bias.output factor", outputs, outputs), biasS)

		ones := mat.NewDense(rows, 1, nil)
		for i := range rows {
			ones.Set(i, 0, 1)
		}
		for _, part := range []struct {
			name         string
			theta, drift *mat.Dense
		}{
			{"conv.weight", weight, matrixProduct(p.T(), p, slopes.T(), patches, q.T(), q)},
			{"conv.bias", bias, matrixProduct(biasP.T(), biasP, slopes.T(), ones)},
		} {
			part.drift.Scale(-h*dataSize, part.drift)
			part.theta.Add(part.theta, part.drift)
			r, columns := part.theta.Dims()
			check(part.name, read(part.name, r, columns), part.theta)
			if step > 0 && mat.Norm(part.drift, 2) == 0 {
				t.Errorf("%s does not move at step %d", part.name, step)
			}
		}
		newP := read("conv.bias.output whitener", outputs, outputs)
		check("the bias's inverse", matrixProduct(newP, damped(biasS, k.Damping), newP.T()), identityMatrix(outputs))
	}
}

// movedAverage is the running mean of a factor.
func movedAverage(before, now *mat.Dense, scale, alpha float64) *mat.Dense {
	now.Scale(scale, now)
	if before == nil {
		return now
	}
	var rest mat.Dense
	rest.Scale(alpha, before)
	now.Scale(1-alpha, now)
	now.Add(now, &rest)
	return now
}

// TestKSGLDThreads: a convolution's bits do not depend on the number of threads.
func TestKSGLDThreads(t *testing.T) {
	c := convolved{16, 20, 12, 12, layers.Conv2D{Name: "conv", Filters: 33, Kernel: 5, Stride: 1, Padding: 0}}
	run := func(threads int) []float64 {
		b := graph.New(tensor.Float32)
		k := langevin.KSGLD{Alpha: 0.5, Damping: 0.02, Refresh: 1, FreezeAt: 2}
		if err := langevin.Attach(b, k, langevin.Posterior{DataSize: 40}, c.build(b), []float64{0.01}, []float64{1}); err != nil {
			t.Fatal(err)
		}
		s := trial.Load(t, b, graph.LoadOptions{Seed: trial.RunSeed}, threads)
		trial.Advance(t, s, 3)
		return trial.Values(t, s, "conv.weight", 0, 33*20*25)
	}
	want := run(1)
	for i, got := range run(3) {
		if math.Float64bits(got) != math.Float64bits(want[i]) || math.IsNaN(got) {
			t.Fatalf("element %d is %v on three threads, %v on one", i, got, want[i])
		}
	}
}

// TestKSGLDRefuses: parameters of no layer without a Rest, and attributes out of range.
func TestKSGLDRefuses(t *testing.T) {
	k := langevin.KSGLD{Alpha: 0.9, Damping: 0.1, Refresh: 5, FreezeAt: 10}
	attach := func(k langevin.KSGLD, layer layers.Layer) error {
		b := graph.New(tensor.Float32)
		x := layer.Apply(b, b.Data("x", tensor.Float32, 3, 2, 5, 5))
		return langevin.Attach(b, k, langevin.Posterior{DataSize: 10}, b.Apply(op.Sum{}, x), []float64{1}, []float64{1})
	}
	normalised := layers.Sequential{layers.Conv2D{Filters: 2, Kernel: 3}, layers.FilterResponseNorm{}}
	if err := attach(k, normalised); err == nil || !strings.Contains(err.Error(), "Rest must be set") {
		t.Errorf("error %v", err)
	}
	k.Rest = langevin.SGLD{}
	if err := attach(k, normalised); err != nil {
		t.Error(err)
	}
	for _, wrong := range []langevin.KSGLD{
		{}, {Alpha: 1, Damping: 1, Refresh: 1, FreezeAt: 1}, {Damping: -1, Refresh: 1, FreezeAt: 1}, {Damping: 1, FreezeAt: 1}, {Damping: 1, Refresh: 1},
		{Damping: 1, Refresh: 1, FreezeAt: 1, Rest: langevin.KSGLD{Damping: 1, Refresh: 1, FreezeAt: 1}},
		{Damping: 1, Refresh: 1, FreezeAt: 1, Rest: langevin.SGHMC{}},
		{Damping: 1, Refresh: 1, FreezeAt: 1, Rest: langevin.MatchedFriction{Friction: 0.1, Masses: langevin.MassesEqual}},
		{Damping: 1, Refresh: 1, FreezeAt: 1, Rest: langevin.PSGLD{Lambda: 1, Gamma: langevin.GammaExact}},
	} {
		if err := wrong.Validate(); err == nil {
			t.Errorf("%+v: no error", wrong)
		}
	}
}
