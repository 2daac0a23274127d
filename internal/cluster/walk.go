package cluster

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// NoRunError is the error for a directory without a run in or below it. Cause is nil, or why
// something called manifest.json there is not the manifest of a run.
type NoRunError struct {
	Dir   string
	Cause error
}

// Error names the directory and the cause.
func (n *NoRunError) Error() string {
	text := "cluster: no run in or below " + n.Dir
	if n.Cause != nil {
		text += ": " + n.Cause.Error()
	}
	return text
}

// Walk calls visit for each run in or below the directories, in the order of their paths, with the
// run and its progress. If a run cannot be read, visit gets the error, and run is nil if it cannot
// be opened. Walk does not look for runs inside runs. It returns a NoRunError for a directory
// without runs, and the first error of visit. Walk follows symbolic links among dirs, but not below
// them.
func Walk(dirs []string, visit func(dir string, run *bayes.Run, p bayes.Progress, err error) error) error {
	for _, dir := range dirs {
		found, why := false, error(nil)
		root := dir
		if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			root += string(filepath.Separator) // WalkDir does not follow a link otherwise
		}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			path = filepath.Clean(path)
			run, err := bayes.Open(path)
			if errors.As(err, new(*bayes.NotARunError)) {
				if why == nil && !errors.Is(err, os.ErrNotExist) {
					why = err
				}
				return nil
			}
			var p bayes.Progress
			if err == nil {
				p, err = run.Progress()
			}
			found = true
			if err := visit(path, run, p, err); err != nil {
				return err
			}
			return fs.SkipDir
		})
		if err != nil {
			return errors.Wrap(err, "cluster")
		}
		if !found {
			return errors.WithStack(&NoRunError{dir, why})
		}
	}
	return nil
}
