//go:build unix

package interrupt

import (
	"os"
	"syscall"
)

// signals are those that users and schedulers send to stop a program.
var signals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
