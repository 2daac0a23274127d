//go:build unix

package interrupt

import (
	"context"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestHangups: SIGHUP goes to the channel, also where it was ignored, and other signals stop.
func TestHangups(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	ctx, release := Context()
	defer release()
	received := Hangups(ctx)
	raise := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(syscall.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		raise(syscall.SIGHUP)
		select {
		case <-received:
		case <-time.After(10 * time.Second):
			t.Fatal("no SIGHUP was received")
		}
	}
	if ctx.Err() != nil {
		t.Fatalf("SIGHUP stopped the context: %v", context.Cause(ctx))
	}
	raise(syscall.SIGTERM)
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("SIGTERM did not stop the context")
	}
	if stop := Of(ctx); stop == nil || stop.Signal != syscall.SIGTERM {
		t.Errorf("stopped by %v", stop)
	}
	select {
	case <-Hangups(context.Background()):
		t.Error("a context without signals receives one")
	default:
	}
}
