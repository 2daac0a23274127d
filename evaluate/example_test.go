package evaluate_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/evaluate"
)

// Two posterior samples agree on the first example and disagree on the second. Mutual information
// detects the disagreement.
func Example() {
	predictive, err := evaluate.NewPredictive(2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sample := range [][]float32{
		{0.9, 0.1, 0, 0.9, 0.1, 0},
		{0.9, 0.1, 0, 0, 0.1, 0.9},
	} {
		if err := predictive.Add(sample, 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	p := predictive.Predictions("two images", []int32{0, 2})
	scores, err := evaluate.Assess(evaluate.Case{In: p})
	if err != nil {
		fmt.Println(err)
		return
	}
	u := p.Uncertainty
	detection, err := evaluate.Detect(u.MutualInformation[:1], u.MutualInformation[1:])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("confidence %.2f, mutual information %.2f, accuracy %.2f\n", u.Confidence, u.MutualInformation, scores.Values["accuracy"])
	fmt.Println(detection)
	// Output:
	// confidence [0.90 0.45], mutual information [0.00 0.62], accuracy 0.50
	// AUROC 1.0000, AUPR-out 1.0000, AUPR-in 1.0000, FPR95 0.0000 (positive class: out of distribution)
}

// Held-out examples calibrate conformal prediction sets and the test for in-distribution examples.
// At a level of 60 %, the threshold is the third best of four held-out examples.
func ExampleCalibrate() {
	held, err := evaluate.NewPredictions("held out", []float64{
		0.9, 0.1, 0,
		0.1, 0.8, 0.1,
		0.6, 0.4, 0,
		0.4, 0.3, 0.3,
	}, []int32{0, 1, 0, 2}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	held.Nonconformity = held.Entropy // any score may decide what is in distribution
	calibration, err := evaluate.Calibrate(held)
	if err != nil {
		fmt.Println(err)
		return
	}
	fresh, err := evaluate.NewPredictions("fresh", []float64{
		0.95, 0.05, 0,
		0.35, 0.35, 0.3,
	}, nil, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	sets, err := calibration.PredictionSets(fresh.Probabilities, fresh.Classes, 0.6, evaluate.SetRule{AllowEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	inDistribution, err := calibration.InDistribution(fresh.Entropy, 0.6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("prediction sets:", sets)
	fmt.Println("in distribution:", inDistribution)
	_, err = calibration.PredictionSets(fresh.Probabilities, fresh.Classes, 0.95, evaluate.SetRule{AllowEmpty: true})
	fmt.Println(err)
	// Output:
	// prediction sets: [[0] []]
	// in distribution: [true false]
	// evaluate: PredictionSets: level 0.95 needs at least 19 held-out examples, held out has 4
}
