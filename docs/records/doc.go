// Command records keeps what the documents' figures come from, and writes their tables from it.
//
// Nouns. A Record is one JSON file beside this one: the command that was run, and of each of its
// runs the manifest, the scores and the diagnostics, or what it printed. A table of README.md or of
// a file in docs is the indented block after a line
//
//	<!-- table: KIND RECORD ... -->
//
// Kinds: "scores RECORD KEYS", a row for each score and a column for each run; "seeds RECORD KEYS",
// a row for each method, whose runs are METHOD-SEED, with means over seeds; "temperatures RECORD"
// and "verdicts RECORD", as train prints them; "printed RECORD TITLE", the printed table that
// begins with that title; "steps RECORD", "costs RECORD", "rates RECORD" and "kernels RECORD", of
// benchmarks/history. Of what has no such line there is no record.
//
//	go run ./docs/records                                    writes all tables
//	go run ./docs/records add NAME COMMAND SCORES RUN...     adds a record of runs
//	go run ./docs/records print NAME COMMAND <OUTPUT         adds a record of what COMMAND printed
//
// SCORES is what pollen ood --json printed of the runs, or - for none. A test compares tables with
// records.
package main
