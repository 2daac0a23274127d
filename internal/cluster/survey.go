package cluster

import (
	"io/fs"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
)

// NoRunError is the error of a folder without a run at or below it.
type NoRunError struct{ Dir string }

// Error names the folder.
func (n *NoRunError) Error() string { return "cluster: there is no run at or below " + n.Dir }

// Walk calls see for each run at or below the given folders, in the order of their paths, with
// what can be known of it from its folder; err is what cannot, and run is nil where that is all. It
// does not look for runs in runs. A folder without any is NoRunError.
func Walk(dirs []string, see func(dir string, run *pollen.Run, p pollen.Progress, err error) error) error {
	for _, dir := range dirs {
		found := false
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			run, err := pollen.Open(path)
			if errors.As(err, new(*pollen.NotARunError)) {
				return nil
			}
			var p pollen.Progress
			if err == nil {
				p, err = run.Progress()
			}
			found = true
			if err := see(path, run, p, err); err != nil {
				return err
			}
			return fs.SkipDir
		})
		if err != nil {
			return errors.Wrap(err, "cluster: survey")
		}
		if !found {
			return errors.WithStack(&NoRunError{dir})
		}
	}
	return nil
}
