// Package memory reports how much more memory the process can take, and defines the error of work
// that needs more.
//
// A Go program that the system refuses memory ends with a stack trace and exit code 2. Work that
// may take much memory therefore estimates its need and calls Check before it allocates anything.
// It reports an Error, which has both numbers and settings that need less.
package memory
