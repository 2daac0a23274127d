package serve

import (
	"context"
	"net/http"
	"time"
)

// predict handles POST /predict.
func (s *Server) predict(w http.ResponseWriter, r *http.Request) error {
	h := newReservation(&s.memory)
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
	pixels, failed, err := s.decode(ctx, q.images, h)
	if err != nil {
		return err
	}
	good := 0
	for _, err := range failed {
		if err == nil {
			good++
		}
	}
	if good == 0 && len(failed) == 1 {
		return failed[0]
	}
	given := result{digest: s.info().Digest}
	if good > 0 {
		if given = s.queue.submit(ctx, good, pixels); given.err != nil {
			return given.err
		}
	}
	s.drift.add(given.answers)
	w.Header().Set(digestHeader, given.digest)
	writePredictions(w, q, given, failed)
	return nil
}

// failure is the answer for an image that could not be decoded.
type failure struct {
	File  string `json:"file,omitempty"`
	Error string `json:"error"`
}

// writePredictions writes an answer or a failure for each image. If all failed, the status and the
// error are the first image's.
func writePredictions(w http.ResponseWriter, q predictRequest, given result, failed []error) {
	response := struct {
		Error   string `json:"error,omitempty"`
		Answers []any  `json:"answers"`
		Digest  string `json:"runDigest"`
	}{Digest: given.digest}
	code, answers := http.StatusOK, given.answers
	if len(answers) == 0 {
		code, response.Error = statusOf(failed[0]), failed[0].Error()
	}
	for i, upload := range q.images {
		if failed[i] != nil {
			response.Answers = append(response.Answers, failure{upload.file, failed[i].Error()})
			continue
		}
		answer := answers[0]
		answers = answers[1:]
		answer.File = upload.file
		if !q.probabilities {
			answer.Probabilities = nil
		}
		response.Answers = append(response.Answers, answer)
	}
	if q.instances { // as clients of TensorFlow Serving and KServe expect
		writeJSON(w, code, struct {
			Error       string `json:"error,omitempty"`
			Predictions []any  `json:"predictions"`
			Digest      string `json:"runDigest"`
		}{response.Error, response.Answers, response.Digest})
		return
	}
	writeJSON(w, code, response)
}
