//go:build unix

package interrupt

import (
	"os"
	"os/signal"
	"syscall"
)

// signals returns the signals that users and schedulers send to stop a program. A terminal that
// is closed sends SIGHUP, which nohup makes its program ignore.
func signals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// hangup is the signal to reload.
var hangup os.Signal = syscall.SIGHUP
