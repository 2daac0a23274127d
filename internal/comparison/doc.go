// Package comparison trains several methods into one directory, and resumes all of them after a
// crash. Cost estimates the time of a run, Summarize tabulates its chains, and PerturbedScores
// tabulates scores on perturbed test images.
//
// A Comparison is a directory with a record of its entries, and a directory for the run of each
// Entry. A Summary has tables of chains and temperatures, with notes.
//
// Finished runs are not repeated, stopped runs continue to the same bits, and one process at a time
// writes.
package comparison
