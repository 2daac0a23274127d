//go:build !unix

package interrupt

import (
	"os"
	"syscall"
)

// signals returns the signals that users send to stop a program.
func signals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// hangup is the signal to reload: there is none.
var hangup os.Signal
