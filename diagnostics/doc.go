// Package diagnostics measures how far samples can be trusted.
//
// A trace is the values of a quantity in one chain: SplitRHat, EffectiveSampleSize, BFMI and
// MeanStandardError are functions of traces, and Summarize combines them. SummarizeTraces makes a
// table of the traces that samplers return. LeaveOneOut compares models by the traces of their log
// likelihoods. SteinDiscrepancy is a function of samples and scores. A Thermometer averages the
// temperatures of a running session's layers. An Audit computes the temperature and the prior that
// the settings of any program imply, in that program's own convention for step sizes.
//
// A Report is what package bayes measures of the chains of a run, and its Verdict is whether they
// sampled their posterior.
//
// A number that means little without its standard error comes with it.
package diagnostics
