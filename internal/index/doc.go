// Package index keeps the index of a run: a journal that lists the run's files with their
// checksums.
//
// A file is on the disk before its Line, so a file that is listed and missing was lost. A sample on
// the disk that is not listed is being written, or does not belong to the run.
package index
