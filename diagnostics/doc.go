// Package diagnostics says how far samples can be trusted.
//
// Nouns. A trace is the values of a quantity in one chain: SplitRHat, EffectiveSampleSize and
// MeanStandardError are functions of traces, SteinDiscrepancy is a function of samples and scores.
// A Thermometer averages the temperatures of a running session's layers. An Audit computes the
// temperature and prior that a program's settings imply, in its own step size convention.
//
// Policy: a number that means little by itself comes with its standard error.
package diagnostics
