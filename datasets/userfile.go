package datasets

import (
	"os"

	"github.com/pkg/errors"

	disk "github.com/pollen-ml/pollen/internal/file"
)

// openFile opens a file of the user to read. Anything but a regular file is an error at once: a
// named pipe or a device might never answer.
func openFile(path string) (*os.File, error) {
	opened, err := disk.Open(path, 0)
	return opened, errors.Cause(err)
}

// readFile returns the content of a regular file of at most max bytes.
func readFile(path string, max int64) ([]byte, error) {
	content, err := disk.Read(path, max)
	return content, errors.Cause(err)
}
