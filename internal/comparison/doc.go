// Package comparison trains several methods into one folder, and goes on with all of them after a
// crash. Cost says before what a run will take, Summarize what its chains did, Changed how runs do
// on images that are changed.
//
// Nouns. A Comparison is a folder with a record of what is compared, and a folder for the run of
// each Entry. A Summary is tables of chains and of temperatures, with notes. Changed are tables
// with a row for each run.
//
// Policy: what was finished is not done again, what was stopped goes on to the same bits, and one
// process at a time writes.
package comparison
