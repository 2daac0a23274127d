package diagnostics_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/langevin"
)

// Four chains of an autoregression, each draw of which keeps 0.8 of the one before: 1000 draws of it
// are worth about 1000 (1 - 0.8)/(1 + 0.8) independent ones. A fifth chain that stays elsewhere is
// noticed by R-hat.
func ExampleSplitRHat() {
	r := rand.New(rand.NewPCG(1, 2))
	chain := func(mean float64) []float64 {
		draws, x := make([]float64, 1000), 0.0
		for i := range draws {
			x = 0.8*x + 0.6*r.NormFloat64()
			draws[i] = mean + x
		}
		return draws
	}
	chains := [][]float64{chain(0), chain(0), chain(0), chain(0)}
	rHat, _ := diagnostics.SplitRHat(chains)
	bulk, tail, _ := diagnostics.EffectiveSampleSize(chains)
	standardError, _ := diagnostics.MeanStandardError(chains)
	fmt.Printf("mixed: R-hat %.2f, about %.0f of 4000 draws, %.0f in the tails, standard error %.2f\n",
		rHat, 100*math.Round(bulk/100), 100*math.Round(tail/100), standardError)

	rHat, _ = diagnostics.SplitRHat(append(chains, chain(3)))
	fmt.Printf("one chain elsewhere: R-hat %.1f\n", rHat)
	// Output:
	// mixed: R-hat 1.01, about 400 of 4000 draws, 1100 in the tails, standard error 0.05
	// one chain elsewhere: R-hat 1.4
}

// The mean, spread and reliability of four chains of independent draws.
func ExampleSummarize() {
	r := rand.New(rand.NewPCG(1, 2))
	chains := make([][]float64, 4)
	for i := range chains {
		for range 250 {
			chains[i] = append(chains[i], 3+2*r.NormFloat64())
		}
	}
	s, err := diagnostics.Summarize(chains)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s)
	// Output: mean 3.04 +- 0.06, std 1.99, 90 % in -0.208 ... 6.25, R-hat 1.003, 1042 effective draws, 970 in the tails
}

// The traces of a sampler, here written by hand: samplers of package mcmc and langevin.Plan.Collect
// return them. The chains disagree about the second slope.
func ExampleSummarizeTraces() {
	r := rand.New(rand.NewPCG(1, 2))
	traces := langevin.NewTraces(4)
	traces.Add("intercept", 1)
	traces.Add("slopes", 2)
	for range 250 {
		for chain := range 4 {
			traces.Extend("intercept", chain)[0] = 3 + 2*r.NormFloat64()
			slopes := traces.Extend("slopes", chain)
			slopes[0], slopes[1] = r.NormFloat64(), float64(chain)+r.NormFloat64()
		}
	}
	table, err := diagnostics.SummarizeTraces(traces)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(table)
	fmt.Println("mixed:", table.MaxRHat() < diagnostics.MixedRHat)
	// Output:
	// quantity    mean    +-    std     5 %    50 %  95 %  R-hat  ESS  tail ESS
	// intercept   3.02  0.07   2.07  -0.323    2.98  6.32  1.000  909      1036
	// slopes[0]  0.018  0.03  0.966   -1.56  0.0288   1.6  1.001  953       960
	// slopes[1]   1.52   0.5   1.47  -0.877     1.5   3.9  1.548    7        46
	// mixed: false
}

// The settings of a public program, which adds noise of variance 2 rate to a step along the gradient
// of the mean loss: it forgets that the step size is rate/N.
func ExampleAudit() {
	a := diagnostics.Audit{Rate: 0.001, Noise: 0.0447, DataSize: 60000, Convention: diagnostics.MeanLoss}
	fmt.Printf("T = %.0f\n%s\n", a.Temperature(), a.Verdict())
	fmt.Printf("noise for T = 1: %.2g\n", a.NoiseFor(1))
	// Output:
	// T = 59943
	// This samples a posterior in which each example counts 1.6683e-05 times: it is too hot, less certain than the data allow.
	// noise for T = 1: 0.00018
}

// Two models of six observations, with noise of standard deviation 1 and 3: leave-one-out
// cross-validation tells which predicts an observation better that it has not seen. It takes the
// traces of the log likelihood of each observation, here for draws of the mean.
func ExampleEstimateLeaveOneOut() {
	y := []float64{-1.2, -0.4, 0.1, 0.3, 0.9, 1.5}
	logLikelihoods := func(std float64) (all [][][]float64) {
		for i := range y {
			r := rand.New(rand.NewPCG(1, 2)) // the same draws for each observation
			trace := make([]float64, 1000)
			for draw := range trace {
				mean := 0.2 + std*r.NormFloat64()/math.Sqrt(6)
				z := (y[i] - mean) / std
				trace[draw] = -z*z/2 - math.Log(std) - math.Log(2*math.Pi)/2
			}
			all = append(all, [][]float64{trace})
		}
		return all
	}
	narrow, _ := diagnostics.EstimateLeaveOneOut(logLikelihoods(1))
	wide, _ := diagnostics.EstimateLeaveOneOut(logLikelihoods(3))
	difference, _ := narrow.Minus(wide)
	fmt.Println(narrow)
	fmt.Println(wide)
	fmt.Println("the first is better by", difference)
	// Output:
	// elpd -9 ± 1, 0.8 effective parameters
	// elpd -12.9 ± 0.1, 0.2 effective parameters
	// the first is better by 4 ± 1
}

// Two chains for a normal distribution, of which only the gradient of the potential x^2/2 is known.
// The second one is too hot: its unbiased statistic is far from 0.
func ExampleSteinDiscrepancy() {
	kernel := diagnostics.InverseMultiquadric{Scale: 1, Exponent: -0.5}
	r := rand.New(rand.NewPCG(1, 2))
	for _, std := range []float64{1, 1.5} {
		var samples, scores [][]float64
		for range 500 {
			x := std * r.NormFloat64()
			samples, scores = append(samples, []float64{x}), append(scores, []float64{-x})
		}
		_, squared, err := diagnostics.SteinDiscrepancy(kernel, samples, scores)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("standard deviation %.1f: %.2f\n", std, squared)
	}
	// Output:
	// standard deviation 1.0: 0.00
	// standard deviation 1.5: 0.09
}
