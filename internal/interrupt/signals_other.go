//go:build !unix

package interrupt

import (
	"os"
	"syscall"
)

var signals = []os.Signal{os.Interrupt, syscall.SIGTERM}
