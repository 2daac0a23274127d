// Package index keeps the index of a run: a journal that lists the run's files with their
// checksums.
//
// A file is on the disk before its first Line, so a file that is listed and missing was lost. A
// sample on the disk that is not listed is being written, or does not belong to the run. A file
// that replaces a listed one is listed before it is in place, so that the last Line or the one
// before it describes the file.
package index
