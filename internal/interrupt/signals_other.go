//go:build !unix

package interrupt

import (
	"os"
	"syscall"
)

// signals returns those that users send to stop a program.
func signals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// hangup is the signal that a server reloads by: there is none.
var hangup os.Signal
