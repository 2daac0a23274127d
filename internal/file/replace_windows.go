package file

import (
	"time"

	"github.com/pkg/errors"
	"golang.org/x/sys/windows"
)

// syncDir does nothing: Windows has no such call.
func syncDir(string, string) error { return nil }

// replace moves a file over another in the same directory, and returns once the move is on the
// disk. Windows refuses that while another program, such as a virus scanner, has one of them open:
// it is retried for a second.
func replace(from, to string) error {
	if _, err := ask(CallRename, to, 0); err != nil {
		return err
	}
	old, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	path, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	for range 100 {
		err = windows.MoveFileEx(old, path, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
		if !errors.Is(err, windows.ERROR_ACCESS_DENIED) && !errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
