package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/samples"
)

// Digest returns a SHA-256, in hexadecimal digits, over the checksums of the files that the results
// of the run depend on: manifest, diagnostics, calibration, samples and states. It is the SHA-256
// of a line for each file,
//
//	CHECKSUM  NAME\n
//
// sorted by name. files are the run's samples, of List and Intact. Other files that the Reader
// leaves out are not counted. For a gathered run, which has no samples of its own, parts has the
// digest of each part by its place in the manifest.
//
// Digest reads only the small files. It takes the checksums of samples and states from the index:
// every reader of a sample compares its checksum with the index.
func (r *Reader) Digest(files []File, parts map[string]string) (string, error) {
	x, err := ReadIndex(r.Dir)
	if err != nil {
		if !r.WithoutDamaged {
			return "", err
		}
		x = &index.Index{}
	}
	sums := maps.Clone(parts)
	if sums == nil {
		sums = map[string]string{}
		if err := addSamples(sums, files, x); err != nil {
			return "", err
		}
	}
	for _, name := range append([]string{ManifestFile}, resultFiles...) {
		line, err := index.OfJSON(r.Dir, name)
		switch {
		case err == nil:
			sums[name] = line.Sum
		case name != ManifestFile && os.IsNotExist(errors.Cause(err)) && x.Lines[name].Sum == "":
		case name != ManifestFile && r.WithoutDamaged:
		default:
			return "", damaged(filepath.Join(r.Dir, name), err)
		}
	}
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(hash, "%s  %s\n", sums[name], name)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// addSamples adds the checksums of samples and states by name.
func addSamples(sums map[string]string, files []File, x *index.Index) error {
	for _, f := range files {
		if f.Sum == "" { // the index was left out
			var err error
			if _, f.Sum, err = samples.ReadWithChecksum(f.Path); err != nil {
				return damaged(f.Path, err)
			}
		}
		sums[SamplesDir+"/"+filepath.Base(f.Path)] = f.Sum
	}
	for name, line := range x.Lines {
		dir, base := filepath.Split(filepath.FromSlash(name))
		if _, _, err := samples.ParseFileName(base); err == nil && filepath.Clean(dir) == StatesDir && line.Sum != "" {
			sums[name] = line.Sum
		}
	}
	return nil
}
