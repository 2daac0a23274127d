// Package memory reports how much more memory the process can take, and has the error of work that
// needs more than that.
//
// A Go program that the system refuses memory ends with a stack trace and exit code 2. Work that
// may take much therefore estimates what it needs, calls Check, and reports an Error, with both
// numbers and what would need less, before it allocates anything.
package memory
