package progress

import (
	"io"

	"github.com/pkg/errors"
)

// Results is the writer for a program's results. It keeps the first write error, so that the
// program can exit with an error if results were lost.
type Results struct {
	To  io.Writer
	Err error
}

// Write implements io.Writer.
func (r *Results) Write(p []byte) (int, error) {
	n, err := r.To.Write(p)
	if r.Err == nil {
		r.Err = errors.Wrap(err, "results")
	}
	return n, err
}
