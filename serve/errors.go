package serve

import (
	"encoding/json"
	"net/http"

	"github.com/pkg/errors"
)

// failure is an error with the status that a client gets.
type statusError struct {
	code int
	error
}

// gone is the status, for the metrics only, of a request whose client did not wait for the answer.
const statusClientClosed = 499

func refuse(code int, format string, values ...any) error {
	return &statusError{code, errors.Errorf(format, values...)}
}

func (f *statusError) Unwrap() error { return f.error }

// statusOf is the status of an error: a failure's own, or 500.
func statusOf(err error) int {
	var f *statusError
	if errors.As(err, &f) {
		return f.code
	}
	return http.StatusInternalServerError
}

// writeError answers with an error. One that is not the client's fault is reported, not described.
func (s *Server) writeError(w http.ResponseWriter, err error) {
	code, text := statusOf(err), err.Error()
	switch code {
	case statusClientClosed:
		w.WriteHeader(statusClientClosed) // for the metrics
		return
	case http.StatusInternalServerError:
		s.options.Report(err)
		text = "the prediction failed; the operator was told why"
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, code, map[string]string{"error": text})
}

// writeJSON answers with a value that always has a JSON form.
func writeJSON(w http.ResponseWriter, code int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write(append(content, '\n')) // an error here is the client's, who is gone
}
