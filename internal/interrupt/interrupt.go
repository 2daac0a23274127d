package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pkg/errors"
)

// Stop is the cause of a context that a signal ended.
type Stop struct{ Signal os.Signal }

// Error names the signal.
func (s *Stop) Error() string { return fmt.Sprintf("stopped by the signal %v", s.Signal) }

// ExitCode is what shells and clusters take for an end by that signal: 128 and its number, as 130
// for Ctrl-C and 143 for SIGTERM.
func (s *Stop) ExitCode() int {
	if number, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 128 + int(syscall.SIGINT)
}

// Context is a context that the first of the signals ends: Ctrl-C, SIGTERM and, where there are
// any, SIGUSR1 and SIGUSR2. From then on a signal does what it does to any program. release ends
// the watch.
func Context() (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	done := make(chan struct{})
	go func() {
		select {
		case s := <-received:
			signal.Reset(signals...)
			cancel(&Stop{s})
		case <-done:
			signal.Stop(received)
			cancel(nil)
		}
	}()
	return ctx, func() { close(done) }
}

// Of is the signal that ended a context; nil if none did.
func Of(ctx context.Context) *Stop {
	var s *Stop
	errors.As(context.Cause(ctx), &s)
	return s
}
