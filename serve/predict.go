package serve

import (
	"context"
	"net/http"

	"github.com/pollen-ml/pollen/bayes"
)

// predict handles POST /predict.
func (b *backend) predict(w http.ResponseWriter, r *http.Request) error {
	query, err := readQuery(r, "probabilities", "model", "version")
	if err != nil {
		return err
	}
	m, err := b.models.acquire(query.model, query.version)
	if err != nil {
		return err
	}
	defer m.requests.Done()
	h := newReservation(&b.memory)
	defer h.release()
	body, err := b.receive(w, r, h)
	if err != nil {
		return err
	}
	expectation := m.queue.expect()
	defer expectation.end()
	q, err := b.parse(r, m, body, h)
	if err != nil {
		return withCurlHint(err, r, body)
	}
	if query.probabilities != nil {
		q.probabilities = *query.probabilities
	}
	ctx, cancel := context.WithTimeout(r.Context(), b.options.Timeout)
	defer cancel()
	pixels, failed, err := b.pool.decodeAll(ctx, m, q.images, h)
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
		return withCurlHint(failed[0], r, body)
	}
	given := result{digest: m.info().Digest}
	if good > 0 {
		if given = expectation.submit(ctx, good, pixels); given.err != nil {
			return given.err
		}
	}
	m.drift.add(given.answers)
	w.Header().Set(digestHeader, given.digest)
	writePredictions(w, q, given, failed)
	return nil
}

// predictResponse is the JSON of the answer to POST /predict. If no image could be decoded it has
// the error of the first one, and its status.
type predictResponse struct {
	Error       string         `json:"error,omitempty" doc:"The error of the first image, if no image could be decoded."`
	Answers     []bayes.Answer `json:"answers,omitempty" doc:"An answer or the reason for none for each image, in order."`
	Predictions []bayes.Answer `json:"predictions,omitempty" doc:"The answers, if the images were called instances."`
	RunDigest   string         `json:"runDigest" doc:"The digest of the run that predicted."`
}

// writePredictions writes an answer or an error for each image.
func writePredictions(w http.ResponseWriter, q predictRequest, given result, failed []error) {
	response := predictResponse{RunDigest: given.digest}
	code, answers := http.StatusOK, given.answers
	if len(answers) == 0 {
		code, response.Error = statusOf(failed[0]), failed[0].Error()
	}
	all := make([]bayes.Answer, len(q.images))
	for i, upload := range q.images {
		if failed[i] != nil {
			all[i].Error = failed[i].Error()
		} else {
			all[i], answers = answers[0], answers[1:]
		}
		all[i].File, all[i].ID = upload.file, upload.id
		if !q.probabilities {
			all[i].Probabilities = nil
		}
	}
	if q.instances { // as clients of TensorFlow Serving and KServe expect
		response.Predictions = all
	} else {
		response.Answers = all
	}
	writeJSON(w, code, response)
}
