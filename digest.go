package pollen

import (
	"path/filepath"
	"slices"

	"github.com/pollen-ml/pollen/internal/rundir"
)

// Digest returns a SHA-256, in hexadecimal digits, that identifies the content of the run: all that
// its answers and scores depend on, but not how it is stored, where, or what was drawn of it.
// docs/formats.md defines it. Whoever signs the digest signs the run: two runs have the same digest
// only if their manifests, samples, calibrations and diagnostics are the same, bit for bit.
//
// Digest takes the checksums of samples from the run's index. Verify compares them with the files,
// and so do all calls that read samples. The digest of a run that still samples changes with each
// sample. Files that WithoutDamaged leaves out are not counted. The error is DamagedError if a file
// is damaged or missing.
func (r *Run) Digest() (string, error) {
	files, err := r.listSamples()
	if err == nil && len(files) > 0 {
		files, err = r.reader().Intact(files)
	}
	if err != nil {
		return "", err
	}
	return r.digestOf(files)
}

// digestOf returns the digest of the run with these of its samples.
func (r *Run) digestOf(files []rundir.File) (string, error) {
	parts, err := r.Parts()
	if err != nil {
		return "", err
	}
	if parts == nil {
		return r.reader().Digest(files, nil)
	}
	sums := map[string]string{} // by the place in the manifest
	for i, part := range parts {
		dir := filepath.Join(part.dir, rundir.SamplesDir)
		others := func(f rundir.File) bool { return filepath.Dir(f.Path) != dir }
		if sums[r.manifest.Parts[i]], err = part.digestOf(slices.DeleteFunc(slices.Clone(files), others)); err != nil {
			return "", err
		}
	}
	return r.reader().Digest(nil, sums)
}
