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
