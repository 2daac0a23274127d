// Package lint holds tests of the whole repository: which package may import which, how many files
// of a package may use each other, how long lines and functions may be, that exported names are
// documented, and the wording that docs/style.md rules out.
package lint
