// Package evaluate measures how good predicted probabilities are, and whether a network knows what it does not know.
//
// Nouns. A Predictive averages the probabilities of posterior samples in constant memory; its Uncertainty holds, per
// example, how sure the average is and why. Scores are the figures on labelled data: accuracy, negative log likelihood,
// Brier score, calibration errors. A Bin is one group of a reliability diagram. A Detection says how well an uncertainty
// separates out-of-distribution from in-distribution examples; out-of-distribution is the positive class, always. A
// SelectiveRisk is the error rate among the examples a network keeps when it may decline the rest. A Comparison sets one
// predictive distribution against another. FGSM moves images to where a network errs.
//
// Policy: probabilities are averaged, never log-probabilities, and every input is checked: a row that is not a
// distribution, a NaN, a label out of range or a length that does not match is an error, not a figure. All arithmetic is
// float64. No result depends on the order of the examples beyond rounding: ties are resolved by averages, not by position.
//
// Shapes: N examples, K classes; probabilities are [N K], row after row; labels are N int32 in [0, K).
package evaluate
