package serve

import (
	"cmp"
	cryptorand "crypto/rand"
	"log/slog"
	"net"
	"net/http"
	"regexp"
)

// idPattern is the accepted form of a client's request ID, which can be searched for in logs.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9._:/+=@-]{1,128}$`)

// requestID returns the client's ID of a request or, if it has none, a random one. The ID is for
// logs: no answer depends on it.
func requestID(r *http.Request) string {
	if id := r.Header.Get(requestIDHeader); idPattern.MatchString(id) {
		return id
	}
	return cryptorand.Text()
}

// logAccess writes the record of a request to the access log.
func (b *backend) logAccess(r *http.Request, w *recorder, id string, seconds float64) {
	if b.options.AccessLog == nil {
		return
	}
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	b.options.AccessLog.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("id", id), slog.String("client", client), slog.String("method", shortened(r.Method)), slog.String("host", shortened(r.Host)),
		slog.String("path", shortened(r.URL.Path)), slog.Int("status", w.code), slog.Int("bytes", w.bytes), slog.Float64("seconds", seconds),
		slog.String("userAgent", shortened(r.UserAgent())), slog.String("runDigest", w.Header().Get(digestHeader)))
}

// shortened returns at most 200 bytes of a client's text.
func shortened(text string) string { return text[:min(len(text), 200)] }

// recorder records the status of a response, and the number of bytes of its body.
type recorder struct {
	http.ResponseWriter
	code  int
	bytes int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	r.code = cmp.Or(r.code, code)
	r.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(content []byte) (int, error) {
	r.code = cmp.Or(r.code, http.StatusOK)
	n, err := r.ResponseWriter.Write(content)
	r.bytes += n
	return n, err
}

// Unwrap returns the underlying writer for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
