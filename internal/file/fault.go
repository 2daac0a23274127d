package file

import "sync/atomic"

// The calls that change a disk, by the names that a Fault gets.
const (
	CallCreate  = "create"
	CallWrite   = "write"
	CallSync    = "sync"
	CallLink    = "link"
	CallRename  = "rename"
	CallSyncDir = "sync folder"
)

// Fault simulates a disk that fails. It is called before each call that changes a disk. If it
// returns an error, the call fails with that error; a write has then written only the first keep
// bytes. A Fault may also wait, or end the process.
type Fault func(call, path string, bytes int) (keep int, err error)

var fault atomic.Pointer[Fault]

// Inject installs a Fault, and returns the function that removes it. It is for tests.
func Inject(f Fault) (end func()) {
	fault.Store(&f)
	return func() { fault.Store(nil) }
}

// ask calls the Fault, if there is one.
func ask(call, path string, bytes int) (keep int, err error) {
	if f := fault.Load(); f != nil {
		return (*f)(call, path, bytes)
	}
	return 0, nil
}
