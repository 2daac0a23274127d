package serve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// predict handles POST /predict.
func (s *Server) predict(w http.ResponseWriter, r *http.Request) error {
	h := &reservation{budget: &s.memory}
	defer h.release()
	if !s.queue.open() {
		return refuse(http.StatusServiceUnavailable, "the server is closing")
	}
	body, err := s.readBody(w, r, h)
	if err != nil {
		return err
	}
	// The read deadline was for the body. A ResponseWriter without deadlines has none to clear.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	q, err := s.parse(r, body, h)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	pixels, err := s.decode(ctx, q.images, h)
	if err != nil {
		return err
	}
	answers, err := s.queue.submit(ctx, len(q.images), pixels)
	if err != nil {
		return err
	}
	for i := range answers {
		answers[i].File = q.images[i].file
		if !q.probabilities {
			answers[i].Probabilities = nil
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Answers []pollen.Answer `json:"answers"`
	}{answers})
	return nil
}

// decode decodes uploads into the network's input, [n C H W].
func (s *Server) decode(ctx context.Context, uploads []upload, h *reservation) ([]byte, error) {
	d := &s.data
	size := d.Channels * d.Height * d.Width
	if err := h.reserve(2 * size * len(uploads)); err != nil { // pixels, and their copy in a batch
		return nil, err
	}
	pixels := make([]byte, 0, size*len(uploads))
	for i, u := range uploads {
		name := fmt.Sprintf("image %d", i)
		if u.file != "" {
			name += fmt.Sprintf(" (%.80s)", u.file)
		}
		m, err := datasets.Measure(u.content)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %v", name, err)
		}
		if m.Height > s.options.MaxPixels/m.Width {
			return nil, refuse(http.StatusRequestEntityTooLarge, "%s must have at most %d pixels, got %dx%d", name, s.options.MaxPixels, m.Width, m.Height)
		}
		units := max(m.Height*m.Width, s.options.MaxPixels/maxDecoding)
		if err := s.decoding.acquire(ctx, units); err != nil {
			return nil, contextError(ctx)
		}
		image, err := s.decodeOne(ctx, u.content, units)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %v", name, err)
		}
		pixels = append(pixels, image...)
	}
	return pixels, nil
}

// maxDecoding is the maximum number of images that are decoded at the same time, even small ones.
const maxDecoding = 32

// decodeOne decodes an image and releases its units of the semaphore.
func (s *Server) decodeOne(ctx context.Context, content []byte, units int) ([]byte, error) {
	defer s.decoding.release(units)
	return datasets.Decode(ctx, content, s.data.Channels, s.data.Height, s.data.Width)
}
