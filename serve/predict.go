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
	h := &hold{budget: &s.memory}
	defer h.giveBack()
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
	pixels, err := s.decode(ctx, q.pictures, h)
	if err != nil {
		return err
	}
	answers, err := s.queue.ask(ctx, len(q.pictures), pixels)
	if err != nil {
		return err
	}
	for i := range answers {
		answers[i].File = q.pictures[i].file
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
func (s *Server) decode(ctx context.Context, pictures []encoded, h *hold) ([]byte, error) {
	d := &s.data
	size := d.Channels * d.Height * d.Width
	if err := h.take(2 * size * len(pictures)); err != nil { // these, and their copy in a batch
		return nil, err
	}
	pixels := make([]byte, 0, size*len(pictures))
	for i, picture := range pictures {
		name := fmt.Sprintf("image %d", i)
		if picture.file != "" {
			name += fmt.Sprintf(" (%.80s)", picture.file)
		}
		height, width, err := datasets.Measure(picture.content)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "%s: %v", name, err)
		}
		if height > s.options.MaxPixels/width {
			return nil, refuse(http.StatusRequestEntityTooLarge, "%s has %dx%d pixels, wants at most %d", name, width, height, s.options.MaxPixels)
		}
		units := max(height*width, s.options.MaxPixels/maxDecoding)
		if err := s.decoding.wait(ctx, units); err != nil {
			return nil, late(ctx)
		}
		image, err := s.decodeOne(picture.content, units)
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
	defer s.decoding.end(units)
	return datasets.Decode(content, s.data.Channels, s.data.Height, s.data.Width)
}
