package serve

import (
	"encoding/json"
	"net/http"

	"github.com/pkg/errors"
)

// statusError is an error with an HTTP status.
type statusError struct {
	code int
	error
}

// statusClientClosed is the status, only in metrics, of a request whose client closed the
// connection.
const statusClientClosed = 499

func refuse(code int, format string, values ...any) error {
	return &statusError{code, errors.Errorf(format, values...)}
}

func (f *statusError) Unwrap() error { return f.error }

// statusOf returns the status of a statusError, or 500.
func statusOf(err error) int {
	var f *statusError
	if errors.As(err, &f) {
		return f.code
	}
	return http.StatusInternalServerError
}

// writeError writes an error response. It reports a server error to Options.Report, and hides the
// details from the client.
func (s *Server) writeError(w http.ResponseWriter, err error) {
	code, text := statusOf(err), err.Error()
	switch code {
	case statusClientClosed:
		w.WriteHeader(statusClientClosed) // for the metrics
		return
	case http.StatusInternalServerError:
		s.options.Report(err)
		text = "the prediction failed; the error was reported to the operator"
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusRequestTimeout:
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, code, map[string]string{"error": text})
}

// writeJSON writes a JSON response. It panics if value cannot be encoded.
func writeJSON(w http.ResponseWriter, code int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write(append(content, '\n')) // an error means that the client is gone
}
