// Package progress shows the progress of work on a terminal or in a log.
//
// A Line shows one piece of work. Results is the writer for a program's results. Both write only to
// the given writers, and a Line uses only the given clock.
package progress
