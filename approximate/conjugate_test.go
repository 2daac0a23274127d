package approximate_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// Bayesian linear regression: target = x . w + noise, whose posterior is Gaussian. The examples are
// images of one row: the features and the target.
const (
	regressionData     = 24
	regressionFeatures = 3
	regressionBatches  = 4
	regressionNoise    = 0.5
	regressionPrior    = 0.4
)

// regressionBytes are the examples. The second feature depends on the first, which makes the
// posterior correlated.
func regressionBytes() []byte {
	const row = regressionFeatures + 1
	pixels := trial.SomeBytes(regressionData*row, 256, 9)
	for i := range regressionData {
		p := pixels[i*row : (i+1)*row]
		p[1] = byte((4*int(p[0]) + int(p[1])) / 5)
		p[3] = byte(80 + (int(p[0])+int(p[1])-int(p[2]))/4 + int(p[3])/8)
	}
	return pixels
}

// regressionValue is what GatherImages makes of a byte.
func regressionValue(b byte) float64 { return (float64(b)/255 - 0.5) / 0.25 }

// exactRegression is the posterior: its mean, and its precision X'X/noise^2 + 1/prior^2.
func exactRegression(t *testing.T) (mean *mat.VecDense, precision *mat.Dense) {
	t.Helper()
	const row = regressionFeatures + 1
	x, y := mat.NewDense(regressionData, regressionFeatures, nil), mat.NewVecDense(regressionData, nil)
	for i, b := range regressionBytes() {
		if i%row == regressionFeatures {
			y.SetVec(i/row, regressionValue(b))
		} else {
			x.Set(i/row, i%row, regressionValue(b))
		}
	}
	precision, mean = new(mat.Dense), new(mat.VecDense)
	precision.Mul(x.T(), x)
	precision.Scale(1/(regressionNoise*regressionNoise), precision)
	for i := range regressionFeatures {
		precision.Set(i, i, precision.At(i, i)+1/(regressionPrior*regressionPrior))
	}
	var right mat.VecDense
	right.MulVec(x.T(), y)
	right.ScaleVec(1/(regressionNoise*regressionNoise), &right)
	if err := mean.SolveVec(precision, &right); err != nil {
		t.Fatal(err)
	}
	return mean, precision
}

// TestConjugate: on a Gaussian posterior of precision A, q ends at the posterior's mean with
// variances 1/A_ii, smaller than the marginals'.
func TestConjugate(t *testing.T) {
	mean, precision := exactRegression(t)
	var covariance mat.Dense
	if err := covariance.Inverse(precision); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]approximate.BayesByBackprop{
		"drawn":               {},
		"front-loaded":        {FrontLoaded: regressionBatches},
		"closed form":         {ClosedForm: true},
		"local":               {LocalReparameterization: true},
		"local, closed form":  {LocalReparameterization: true, ClosedForm: true},
		"local, front-loaded": {LocalReparameterization: true, FrontLoaded: regressionBatches},
	} {
		t.Run(name, func(t *testing.T) {
			v.Posterior = langevin.Posterior{DataSize: regressionData, Prior: langevin.Gaussian(regressionPrior)}
			v.InitialStd = 0.2
			mu, variance := fitRegression(t, v)
			tolerance := 0.03 * math.Sqrt(12*3000/float64(trial.ChainsOf(t, 12)*trial.StepsOf(t, 3000)))
			for i := range mu {
				std := math.Sqrt(covariance.At(i, i))
				if !(math.Abs(mu[i]-mean.AtVec(i)) < tolerance*std) {
					t.Errorf("mean %d is %.4f, want %.4f: off by %.3f posterior deviations", i, mu[i], mean.AtVec(i), (mu[i]-mean.AtVec(i))/std)
				}
				if want := 1 / precision.At(i, i); !(math.Abs(variance[i]/want-1) < tolerance) {
					t.Errorf("variance %d is %.5f, want %.5f; the marginal's is %.5f", i, variance[i], want, covariance.At(i, i))
				}
			}
		})
	}
	// The prior matters: without it the mean is x that solves (A - 1/prior^2) x = A mean.
	var right, flat mat.VecDense
	right.MulVec(precision, mean)
	for i := range regressionFeatures {
		precision.Set(i, i, precision.At(i, i)-1/(regressionPrior*regressionPrior))
	}
	if err := flat.SolveVec(precision, &right); err != nil {
		t.Fatal(err)
	}
	for i := range regressionFeatures {
		if moved := math.Abs(flat.AtVec(i)-mean.AtVec(i)) / math.Sqrt(covariance.At(i, i)); moved < 0.1 {
			t.Errorf("the prior moves mean %d by %.3f posterior deviations only", i, moved)
		}
	}
	if ratio := covariance.At(1, 1) * precision.At(1, 1); ratio < 1.5 {
		t.Errorf("the posterior is hardly correlated: a marginal's variance is %.2f times that of q", ratio)
	}
}

// fitRegression returns the means and variances of q, averaged over chains.
func fitRegression(t *testing.T, v approximate.BayesByBackprop) (mu, variance []float64) {
	t.Helper()
	const row = regressionFeatures + 1
	steps, chains := trial.StepsOf(t, 3000), trial.ChainsOf(t, 12)
	b := graph.New(tensor.Float32)
	images := b.Data("images", tensor.Uint8, regressionData, 1, 1, row)
	batch := op.Batch{Size: regressionData / regressionBatches, Order: op.Shuffled}
	x := b.Apply(op.GatherImages{Batch: batch, Mean: op.ChannelsOf(0.5), Std: op.ChannelsOf(0.25)}, images, b.Header())
	x = b.Apply(op.ViewAs(batch.Size, row), x)
	features := b.Apply(op.MatMul{TransposeB: true}, x, b.Data("features", tensor.Float32, regressionFeatures, row))
	target := b.Apply(op.MatMul{TransposeB: true}, x, b.Data("target", tensor.Float32, 1, row))
	y, q := v.Apply(b, layers.Linear{Name: "linear", Outputs: 1, NoBias: true}.Apply, features)
	loss := b.Apply(op.Scale{Factor: 1 / (regressionNoise * regressionNoise)}, b.Apply(op.SquaredError{}, y, target))
	loss, _ = v.Loss(b, q, loss)
	rates := make([]float64, steps)
	for i := range rates {
		rates[i] = 0.03 * math.Pow(1e-2, float64(i)/float64(steps))
	}
	parameters := b.Parameters()
	optimizers.Update(b, optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}, parameters, b.Gradients(loss, parameters...), b.Table("rates", rates))
	session := trial.Load(t, b, graph.LoadOptions{Seed: 8, Chains: chains}, 2)
	if err := graph.Write(session, "images", 0, 0, regressionBytes()); err != nil {
		t.Fatal(err)
	}
	selection := make([]float32, row*row)
	for i := range row {
		selection[i*row+i] = 1
	}
	write32 := func(name string, values []float32) {
		if err := graph.Write(session, name, 0, 0, values); err != nil {
			t.Fatal(err)
		}
	}
	write32("features", selection[:regressionFeatures*row])
	write32("target", selection[regressionFeatures*row:])
	if err := session.Run(steps); err != nil {
		t.Fatal(err)
	}
	mu, variance = make([]float64, regressionFeatures), make([]float64, regressionFeatures)
	for chain := range chains {
		means, rhos := trial.Values(t, session, "linear.weight.mu", chain, len(mu)), trial.Values(t, session, "linear.weight.rho", chain, len(mu))
		for i := range mu {
			sigma := softplus(rhos[i])
			mu[i] += means[i] / float64(chains)
			variance[i] += sigma * sigma / float64(chains)
		}
	}
	return mu, variance
}
