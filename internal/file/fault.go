package file

import "sync/atomic"

// The calls that change a disk, as a Fault sees them.
const (
	CallCreate  = "create"
	CallWrite   = "write"
	CallSync    = "sync"
	CallRename  = "rename"
	CallSyncDir = "sync folder"
)

// Fault stands for a disk that fails: it is asked before each call that changes one. Where it
// returns an error, the call fails with it; a write has then written the first keep bytes, which
// are torn off. A Fault may also wait, or end the process.
type Fault func(call, path string, bytes int) (keep int, err error)

var fault atomic.Pointer[Fault]

// Inject makes a Fault be asked, and returns what ends that. It is for tests.
func Inject(f Fault) (end func()) {
	fault.Store(&f)
	return func() { fault.Store(nil) }
}

// ask asks the Fault, if there is one.
func ask(call, path string, bytes int) (keep int, err error) {
	if f := fault.Load(); f != nil {
		return (*f)(call, path, bytes)
	}
	return 0, nil
}
