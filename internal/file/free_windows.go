package file

import (
	"github.com/pkg/errors"
	"golang.org/x/sys/windows"
)

// Free returns how many bytes can be written into a directory before its disk is full.
func Free(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	var free uint64
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	}
	return free, errors.Wrapf(err, "file: free space of %s", dir)
}
