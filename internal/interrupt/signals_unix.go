//go:build unix

package interrupt

import (
	"os"
	"syscall"
)

// signals are those that clusters send before they take a machine away, and those of people.
var signals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
