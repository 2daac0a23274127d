package main

import "github.com/pollen-ml/pollen/evaluate"

// scores are those of labelled predictions that the commands print.
type scores struct{ Accuracy, NLL, Brier, ECE, MeanConfidence float64 }

func scoreOf(probabilities []float64, labels []int32, classes int) (scores, error) {
	p, err := evaluate.NewPredictions("test", probabilities, labels, classes)
	if err != nil {
		return scores{}, err
	}
	a, err := evaluate.Assess(evaluate.Case{In: p})
	if err != nil {
		return scores{}, err
	}
	v := a.Values
	return scores{v["accuracy"], v["nll"], v["brier"], v["ece"], v["confidence"]}, nil
}
