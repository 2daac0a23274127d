// Package comparison trains several methods into one folder, and goes on with all of them after a
// crash. Cost says before what a run will take, Changed how runs do on images that are changed.
//
// Nouns. A Comparison is a folder with a record of what is compared, and a folder for the run of
// each Entry. Changed are tables with a row for each run.
//
// Policy: what was finished is not done again, what was stopped goes on to the same bits, and one
// process at a time writes.
package comparison
