package serve

import (
	"compress/flate"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/pkg/errors"
)

// plainBody returns a reader of a request's body without its content encoding, gzip or none.
// limit applies to the decompressed content; the compressed body must be limited by the caller.
func plainBody(w http.ResponseWriter, r *http.Request, body io.ReadCloser, limit int) (io.Reader, error) {
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); encoding {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, packedError(err)
		}
		return http.MaxBytesReader(w, packed{unpacked}, int64(limit)), nil
	default:
		w.Header().Set("Accept-Encoding", "gzip")
		return nil, refuse(http.StatusUnsupportedMediaType, "the content encoding must be gzip or none, got %.40q", encoding)
	}
}

// packed is a gzip.Reader whose errors distinguish a body that is not gzip from one that did not
// arrive.
type packed struct{ *gzip.Reader }

// Read implements io.Reader.
func (p packed) Read(content []byte) (int, error) {
	n, err := p.Reader.Read(content)
	return n, packedError(err)
}

func packedError(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, new(flate.CorruptInputError)):
		return refuse(http.StatusBadRequest, "the body must be gzip, as its Content-Encoding says: %v", err)
	}
	return err
}
