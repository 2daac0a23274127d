package serve

import (
	"bytes"
	"context"
	"net/http"
	"strings"

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

// clientText returns the text of an error of package datasets without the names of the package and
// of the function, which mean nothing to a client.
func clientText(err error) string {
	text := strings.TrimPrefix(err.Error(), "datasets: ")
	return strings.TrimPrefix(strings.TrimPrefix(text, "measure: "), "decode: ")
}

// withCurlHint adds a hint to the error of a body that curl may have changed: with -d it removes
// all ends of lines, which few images lack.
func withCurlHint(err error, r *http.Request, body []byte) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if statusOf(err) != http.StatusBadRequest || kind != "application/x-www-form-urlencoded" || bytes.ContainsAny(body, "\r\n") {
		return err
	}
	return refuse(http.StatusBadRequest, "%v; curl sends a file unchanged by --data-binary @FILE, not by -d", err)
}

// contextError returns the error for a request whose context has ended.
func contextError(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return refuse(http.StatusServiceUnavailable, "the server is busy: no answer in time")
	}
	return refuse(statusClientClosed, "the client closed the connection")
}
