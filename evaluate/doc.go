// Package evaluate scores the probabilities of a posterior predictive distribution: accuracy,
// likelihood, calibration, conformal prediction sets and out-of-distribution detection.
//
// A Predictive averages the probabilities of posterior samples in constant memory. Its Predictions
// on one data set include the Uncertainty of each example. Assess computes all scores that apply to
// a Case: predictions on in-distribution test data, optionally on out-of-distribution data,
// optionally with a Calibration. Scores and OODScores return the tables of scores and of
// uncertainties.
//
// Calibrate makes a Calibration from held-out data by split conformal prediction. It turns
// probabilities into prediction sets that contain the label with a chosen probability, and decides
// whether an image is in distribution. Its method Scaled makes the probabilities fit the held-out
// data, with one exponent.
//
// Detect measures how well an uncertainty detects out-of-distribution data, RiskCoverage the error
// rate of a network that may abstain, Compare the difference of two predictive distributions. FGSM
// makes adversarial examples.
//
// Probabilities are averaged, never log-probabilities. Every input is checked: a row that is not a
// distribution, a NaN, a label out of range or a wrong length is an error. A score that does not
// apply is absent, never 0. All arithmetic is float64. Results do not depend on the order of the
// examples, except for rounding: ties are resolved by averages, not by position.
//
// Shapes: N examples, K classes; probabilities are [N K], row after row; labels are N int32 in
// [0, K).
package evaluate
