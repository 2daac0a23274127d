// Package lock lets one process at a time write in a folder.
//
// Nouns. A Lock is the right to write, which one process has. An Owner is a process with a Lock, by
// host, number and turn: each Lock of a folder has a higher turn than those before.
//
// Policy: the operating system's lock decides, which ends with its process, whatever ends that. The
// owner's record names who writes, and fences: a process whose turn is over finds that out by Check
// before it writes, even where a file system's locks are not shared between machines. Readers need
// no lock.
package lock
