package emulator

import (
	"os"
	"syscall"

	"github.com/pkg/errors"
)

// lock waits until no other process holds the file, so that tests of several packages compile once.
func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, errors.Wrap(err, "emulator")
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, errors.Wrap(err, "emulator: "+path)
	}
	return func() { file.Close() }, nil
}
