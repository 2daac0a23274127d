package serve

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// predict answers POST /predict.
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
	// The deadline was for the body. A ResponseWriter without deadlines has nothing to clear.
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

// decode turns pictures into the images that the network sees, [n C H W].
func (s *Server) decode(ctx context.Context, images []upload, h *reservation) ([]byte, error) {
	d := &s.data
	size := d.Channels * d.Height * d.Width
	if err := h.reserve(2 * size * len(images)); err != nil { // these, and their copy in a batch
		return nil, err
	}
	pixels := make([]byte, 0, size*len(images))
	for i, image := range images {
		name := fmt.Sprintf("image %d", i)
		if image.file != "" {
			name += fmt.Sprintf(" (%.80s)", image.file)
		}
		height, width, err := datasets.Measure(image.content)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %v", name, err)
		}
		if height > s.options.MaxPixels/width {
			return nil, refuse(http.StatusRequestEntityTooLarge, "%s has %dx%d pixels, wants at most %d", name, width, height, s.options.MaxPixels)
		}
		units := max(height*width, s.options.MaxPixels/maxDecoding)
		if err := s.decoding.acquire(ctx, units); err != nil {
			return nil, contextError(ctx)
		}
		image, err := s.decodeOne(image.content, units)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %v", name, err)
		}
		pixels = append(pixels, image...)
	}
	return pixels, nil
}

// maxDecoding is how many pictures are decoded at a time, however small they are.
const maxDecoding = 32

// decodeOne decodes one picture, which has its turn, and ends the turn.
func (s *Server) decodeOne(content []byte, units int) ([]byte, error) {
	defer s.decoding.release(units)
	return datasets.Decode(content, s.data.Channels, s.data.Height, s.data.Width)
}
