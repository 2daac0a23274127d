// Package evaluate measures how good predicted probabilities are, and whether a network knows what
// it does not know.
//
// Nouns. A Predictive averages the probabilities of posterior samples in constant memory.
// Predictions are such an average on one data set, with the Uncertainty of each example. A Case is
// what is assessed: predictions on the kind of data that was learnt, perhaps on another kind,
// perhaps a Calibration. A Score is one row of the table of scores, a Signal one row of the table
// of uncertainties; an Assessment has all scores that apply to a case. A Calibration summarises
// held-out data: it turns probabilities into prediction sets that contain the label as often as
// promised, and tells familiar images from others. A Bin is one group of a reliability diagram. A
// Detection says how well an uncertainty detects another kind, always the positive class. A
// SelectiveRisk is the error rate among the examples that a network keeps when it may decline the
// rest. A Comparison compares two predictive distributions. FGSM perturbs images so that a network
// errs.
//
// Policy: probabilities are averaged, never log-probabilities, and every input is checked: a row
// that is not a distribution, a NaN, a label out of range or a length that does not match is an
// error, not a score. A score that does not apply is absent, never 0. All arithmetic is float64. No
// result depends on the order of the examples beyond rounding: ties are resolved by averages, not
// by position.
//
// Shapes: N examples, K classes; probabilities are [N K], row after row; labels are N int32 in
// [0, K).
package evaluate
