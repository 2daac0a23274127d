// Package diagnostics says how far samples can be trusted.
//
// Nouns. A trace is the values of a quantity in one chain: SplitRHat, EffectiveSampleSize and MeanStandardError are functions of traces,
// SteinDiscrepancy is one of samples and scores. A Thermometer averages the temperatures of a running session's layers. An Audit computes
// what temperature and prior the settings of a program stand for, in its own convention of step sizes.
//
// Policy: a number that says little comes with its standard error.
package diagnostics
