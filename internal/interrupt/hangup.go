package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
)

// hangups are the signals of a Context, and the channel for SIGHUP once Hangups was called.
type hangups struct {
	received chan os.Signal
	to       atomic.Pointer[chan os.Signal]
}

type hangupsKey struct{}

// take reports whether a signal is a SIGHUP for the channel of Hangups, and sends it there. It
// drops one that arrives while another waits, since one reload serves both.
func (h *hangups) take(s os.Signal) bool {
	to := h.to.Load()
	if to == nil || !isHangup(s) {
		return false
	}
	select {
	case *to <- s:
	default:
	}
	return true
}

// Hangups returns a channel that receives SIGHUP, the signal for a server to reload. From then on
// SIGHUP does not cancel the context. ctx must be from Context, or derived from it; otherwise, and
// on systems without SIGHUP, the channel receives nothing. A SIGHUP that was ignored when the
// program started is received as well.
func Hangups(ctx context.Context) <-chan os.Signal {
	to := make(chan os.Signal, 1)
	if h, ok := ctx.Value(hangupsKey{}).(*hangups); ok && hangup != nil {
		h.to.Store(&to)
		signal.Notify(h.received, hangup)
	}
	return to
}

func isHangup(s os.Signal) bool { return hangup != nil && s == hangup }
