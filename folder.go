package pollen

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// CheckEmpty refuses a folder that exists and is not empty: runs do not mix.
func CheckEmpty(folder string) error {
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	if len(entries) > 0 {
		return errors.Errorf("pollen: run folder %s is not empty", folder)
	}
	return nil
}

// NewFolder is the name of a folder for a run that does not exist yet: runs/<name>-1, -2, ...
func NewFolder(name string) (string, error) {
	for i := 1; ; i++ {
		folder := filepath.Join("runs", fmt.Sprintf("%s-%d", name, i))
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			return folder, nil
		} else if err != nil {
			return "", errors.Wrap(err, "pollen: run folder")
		}
	}
}

// makeFolder makes a run's folder, and those above it if needed.
func makeFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	return CheckEmpty(folder)
}

// sweep removes what a killed process had begun to write. The patterns are names that earlier
// versions gave such files.
func sweep(folder string) error {
	for _, within := range []string{".", samplesFolder, statesFolder, filepath.Dir(checkpointFile)} {
		if err := file.Sweep(filepath.Join(folder, within)); err != nil {
			return errors.Wrap(err, "pollen: run folder")
		}
	}
	for _, pattern := range []string{".metrics.jsonl*", ".manifest.json*", "samples/.chain*", "states/.chain*", "checkpoint/.state*"} {
		files, err := fs.Glob(os.DirFS(folder), pattern)
		if err != nil {
			return errors.Wrap(err, "pollen: run folder")
		}
		for _, name := range files {
			if err := os.Remove(filepath.Join(folder, name)); err != nil {
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

// writeJSON replaces a file of a run's folder by a value's JSON.
func writeJSON(folder, name string, value any, indent string) error {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetIndent("", indent)
	err := encoder.Encode(value)
	if err == nil {
		err = file.Write(filepath.Join(folder, name), content.Bytes())
	}
	return errors.Wrapf(err, "pollen: %s", name)
}

// readJSON reads what writeJSON wrote. The error's cause is os.ErrNotExist if nothing was.
func readJSON(folder, name string, value any) error {
	path := filepath.Join(folder, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	return errors.Wrapf(json.Unmarshal(content, value), "pollen: %s", path)
}
