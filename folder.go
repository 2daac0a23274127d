package pollen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// CheckEmpty refuses, by os.ErrExist, a folder with something in it; what a process left that was
// killed before its run began does not count.
func CheckEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	if len(entries) > 0 && !isAbandonedInit(dir, entries) {
		return notEmpty(dir)
	}
	return nil
}

func notEmpty(dir string) error {
	return errors.Wrapf(os.ErrExist, "pollen: run folder %s is not empty", dir)
}

// NewDir is the name of a folder for a run that does not exist yet: runs/<name>-1, -2, ...
func NewDir(name string) (string, error) {
	for i := 1; ; i++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", name, i))
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return dir, nil
		} else if err != nil {
			return "", errors.Wrap(err, "pollen: run folder")
		}
	}
}

// sweep removes what a killed process had begun to write. The patterns are names that earlier
// versions gave such files.
func sweep(dir string) error {
	for _, within := range []string{".", samplesDir, statesDir, filepath.Dir(checkpointFile)} {
		if err := file.Sweep(filepath.Join(dir, within)); err != nil {
			return errors.Wrap(err, "pollen: run folder")
		}
	}
	for _, pattern := range []string{".metrics.jsonl*", ".manifest.json*", "samples/.chain*", "states/.chain*", "checkpoint/.state*"} {
		files, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return errors.Wrap(err, "pollen: run folder")
		}
		for _, name := range files {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return errors.Wrap(err, "pollen: run folder")
			}
		}
	}
	return nil
}

// contentHash is the SHA-256 of a data set's images and labels.
func contentHash(d *datasets.Dataset) string {
	hash := sha256.New()
	hash.Write(d.Images)
	hash.Write(tensor.Bytes(d.Labels))
	return hex.EncodeToString(hash.Sum(nil))
}

// writeJSON replaces a file of a run's folder by a value's JSON, sealed.
func writeJSON(dir, name string, value any, indent string) error {
	content, err := checksum.JSON(value, indent)
	if err == nil {
		err = file.Write(filepath.Join(dir, name), content)
	}
	return errors.Wrapf(err, "pollen: %s", name)
}

// readJSON reads what writeJSON wrote, or a version of that format. The error's cause is
// os.ErrNotExist if nothing was, and it is Damaged if that was changed.
func readJSON(dir, name string, value any, format int) error {
	path := filepath.Join(dir, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	if err := checkSeal(content, format); err != nil {
		return damaged(path, err)
	}
	return errors.Wrapf(json.Unmarshal(content, value), "pollen: %s", path)
}

// checkSeal refuses a text that was changed, and one without a seal of a format that has seals.
func checkSeal(content []byte, format int) error {
	_, err := checksum.Check(content, len(content))
	if errors.Cause(err) == checksum.ErrNone && format < sealedFormat {
		return nil
	}
	return err
}
