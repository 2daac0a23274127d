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

// The content types of answers.
const (
	jsonType    = "application/json"
	binaryType  = "application/octet-stream"
	metricsType = "text/plain; version=0.0.4; charset=utf-8"
)

// errorInfo is the JSON of an error.
type errorInfo struct {
	Error string `json:"error"`
}

// writeJSON writes a JSON response. It panics if value cannot be encoded.
func writeJSON(w http.ResponseWriter, code int, value any) {
	content, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	writeContent(w, code, jsonType, append(content, '\n'))
}

// writeContent writes a response that is not to be kept.
func writeContent(w http.ResponseWriter, code int, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	w.Write(content) // an error means that the client is gone
}
