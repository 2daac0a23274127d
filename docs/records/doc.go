// Command records generates the tables of the documents from records of runs, so that no figure in
// a document is typed by hand.
//
// A Record is one JSON file in this directory: a command, and for each of its runs the manifest,
// the scores and the diagnostics, or what the command printed. A table of README.md or of a page
// below docs is the indented block after a line
//
//	<!-- table: KIND RECORD ... -->
//
// Kinds of tables:
//
//	scores RECORD KEYS      a row for each score, a column for each run
//	seeds RECORD KEYS       a row for each method, whose runs are METHOD-SEED: means over seeds
//	fidelity RECORD         scores of distilled runs, and of their teachers in parentheses
//	temperatures RECORD     temperatures by layer, as fit prints them
//	verdicts RECORD         the verdict on equilibrium of each run that sampled
//	printed RECORD TITLE    the printed table that begins with TITLE
//	steps, costs, rates, kernels, pretrained, gpu-steps, gpu-scaling, gpu-calls
//	                        of a record in benchmarks/history
//
// Commands:
//
//	go run ./docs/records                                    writes all tables
//	go run ./docs/records figures                            draws the experiments' figures
//	go run ./docs/records add NAME COMMAND SCORES RUN...     adds a record of runs
//	go run ./docs/records print NAME COMMAND <OUTPUT         adds a record of what COMMAND printed
//
// SCORES is the output of pollen ood --json for the runs, or - for none. A test compares the tables
// with the records.
package main
