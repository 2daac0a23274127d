// Package lock lets one process at a time write to a directory.
//
// A Lock is the right to write. Its Owner is a process, by host, number and turn: each Lock of a
// directory has a higher turn than those before it.
//
// The operating system's lock decides who writes. It ends with its process, however that ends. The
// owner's record is a fence in addition: a process whose turn is over learns that from Check before
// it writes, even if machines do not share the locks of their file system. Readers need no lock.
package lock
