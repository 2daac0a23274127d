package serve

import (
	"bytes"
	"net/http/httptest"
	"testing"
)

// TestBodyTakesWhatItHas: a body without an announced length reserves only the memory of the
// bytes that arrived, even if the limit cuts its last part.
func TestBodyTakesWhatItHas(t *testing.T) {
	const most = 5*firstRoom + 3
	for _, size := range []int{0, 1, firstRoom, 3 * firstRoom, most} {
		s := &backend{options: Options{MaxBody: most}, memory: budget{limit: 1 << 30}}
		h := newReservation(&s.memory)
		request := httptest.NewRequest("POST", "/predict", bytes.NewReader(make([]byte, size)))
		request.ContentLength = -1
		body, err := s.readBody(httptest.NewRecorder(), request, h)
		if err != nil || len(body) != size || h.bytes != cap(body) || s.memory.used.Load() != int64(cap(body)) {
			t.Errorf("%d bytes: %d read (%v), %d taken, %d of the server's, for room of %d", size, len(body), err, h.bytes, s.memory.used.Load(), cap(body))
		}
	}
}
