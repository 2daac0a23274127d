// Package index keeps, beside a run's files, a journal of which there are. Its nouns are the Line
// of a file and the Index of all lines. Its one policy: a file that it lists was on the disk
// before, and a sample on the disk that it does not list is not the run's.
package index
