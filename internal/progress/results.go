package progress

import (
	"io"

	"github.com/pkg/errors"
)

// Results is where a program's results go. It remembers the first failure to write, so that lost
// results end the program with an error.
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
