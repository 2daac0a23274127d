package serve

import (
	"io"
	"net/http"
	"os"
	"time"

	"github.com/pkg/errors"
)

// receive returns the body of a request for predictions.
func (b *backend) receive(w http.ResponseWriter, r *http.Request, h *reservation) ([]byte, error) {
	if !b.models.open() {
		return nil, refuse(http.StatusServiceUnavailable, "the server is closing")
	}
	body, err := b.readBody(w, r, h)
	if err != nil {
		return nil, err
	}
	// The read deadline was for the body. A ResponseWriter without deadlines has none to clear.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// firstRoom is the memory for a body before its first byte arrives. A client that announces many
// bytes and sends none reserves no more.
const firstRoom = 16 << 10

// readBody reads a request's body. It reserves memory as the bytes arrive, not for the announced
// length.
func (b *backend) readBody(w http.ResponseWriter, r *http.Request, h *reservation) ([]byte, error) {
	limit := b.options.MaxBody
	if r.ContentLength > int64(limit) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body must have at most %d bytes (--max-body), got %d", limit, r.ContentLength)
	}
	limited, err := plainBody(w, r, http.MaxBytesReader(w, r.Body, int64(limit)), limit)
	if err != nil {
		return nil, bodyError(err, limit)
	}
	room := min(firstRoom, limit+1)
	if r.ContentLength >= 0 {
		room = min(room, int(r.ContentLength)+1)
	}
	if err := h.reserve(room); err != nil {
		return nil, err
	}
	body := make([]byte, 0, room)
	for {
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, bodyError(err, limit)
		}
		if len(body) < cap(body) {
			continue
		}
		// One byte more than the limit, so that the reader notices a longer body.
		before := cap(body)
		room = min(2*before, limit+1)
		if err := h.reserve(room); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, room), body...)
		h.giveBack(before)
	}
}

func bodyError(err error, limit int) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, new(*statusError)):
		return err
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body must have at most %d bytes (--max-body), got more", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return refuse(http.StatusBadRequest, "the body is incomplete: %v", err)
}
