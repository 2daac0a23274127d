package pollen

// Digest returns a SHA-256, in hexadecimal digits, that identifies the content of the run: all that
// its answers and scores depend on, but not how it is stored, where, or what was drawn of it.
// docs/formats.md defines it. Whoever signs the digest signs the run: two runs have the same digest
// only if their manifests, samples, calibrations and diagnostics are the same, bit for bit.
//
// Digest takes the checksums of samples from the run's index. Verify compares them with the files,
// and so do all calls that read samples. The digest of a run that still samples changes with each
// sample. Samples and a calibration that WithoutDamaged leaves out do not count. The error is
// DamagedError if a file is damaged or missing.
func (r *Run) Digest() (string, error) {
	parts, err := r.Parts()
	if err != nil {
		return "", err
	}
	var sums map[string]string // by the place in the manifest
	for i, part := range parts {
		if sums == nil {
			sums = map[string]string{}
		}
		if sums[r.manifest.Parts[i]], err = part.Digest(); err != nil {
			return "", err
		}
	}
	return r.reader().Digest(sums)
}
