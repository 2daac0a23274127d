package progress

import (
	"io"

	"github.com/pkg/errors"
)

// Results is the writer for a program's results, which it makes printable. It keeps the first write
// error, so that the program can exit with an error if results were lost.
type Results struct {
	To  io.Writer
	Err error
}

// Write implements io.Writer.
func (r *Results) Write(p []byte) (int, error) {
	_, err := io.WriteString(r.To, printable(string(p)))
	if r.Err == nil {
		r.Err = errors.Wrap(err, "results")
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}
