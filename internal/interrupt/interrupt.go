package interrupt

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pkg/errors"
)

// Stop is the cause of a context that a signal canceled.
type Stop struct{ Signal os.Signal }

// Error names the signal.
func (s *Stop) Error() string { return fmt.Sprintf("stopped by the signal %v", s.Signal) }

// ExitCode returns the exit code that shells and schedulers expect after the signal: 128 plus its
// number, such as 130 for Ctrl-C and 143 for SIGTERM.
func (s *Stop) ExitCode() int {
	if number, ok := s.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 128 + int(syscall.SIGINT)
}

// Context returns a context that the first signal cancels: Ctrl-C, SIGTERM and, on Unix, SIGHUP,
// SIGUSR1 and SIGUSR2. A SIGHUP that was ignored when the program started stays ignored. Later
// signals have their default effect. release stops listening for signals.
func Context() (ctx context.Context, release func()) {
	h := &hangups{received: make(chan os.Signal, 1)}
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), hangupsKey{}, h))
	listened := signals()
	signal.Notify(h.received, listened...)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-h.received:
				if h.take(s) {
					continue
				}
				signal.Reset(listened...)
				cancel(&Stop{s})
			case <-done:
				signal.Stop(h.received)
				cancel(nil)
			}
			return
		}
	}()
	return ctx, func() { close(done) }
}

// Of returns the signal that canceled a context, or nil.
func Of(ctx context.Context) *Stop {
	var s *Stop
	errors.As(context.Cause(ctx), &s)
	return s
}

// ExitCode returns the exit code of a program that failed: the code of the signal that canceled its
// context, or else 1.
func ExitCode(ctx context.Context) int {
	if stop := Of(ctx); stop != nil {
		return stop.ExitCode()
	}
	return 1
}
