package pollen

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
)

// partsDir holds the copies of a gathered run's parts, if it has copies.
const partsDir = "parts"

// Gather makes one run of several, whose chains sample the same posterior: in a new or empty
// folder, which names the folders of the parts, or has copies of them. A copy holds what a part has
// by now; parts that are named are read when the run is asked. Parts that differ in anything else
// but seeds, chains, devices and where chains start, and a chain that is in two of them, are
// refused by name.
func Gather(dir string, parts []string, copied bool, options ...Option) (*Run, error) {
	if len(parts) == 0 {
		return nil, invalid("gather %s: no runs to gather", dir)
	}
	if err := CheckEmpty(dir); err != nil {
		return nil, err
	}
	m, err := gathered(parts)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, errors.Wrap(err, "pollen: gather")
	}
	for i, part := range parts {
		place := part
		if copied {
			place = filepath.Join(dir, partsDir, fmt.Sprintf("%0*d", len(fmt.Sprint(len(parts)-1)), i))
			if err := copyRun(place, part); err != nil {
				return nil, err
			}
		}
		if place, err = relative(dir, place); err != nil {
			return nil, err
		}
		m.Parts = append(m.Parts, filepath.ToSlash(place))
	}
	m.Format, m.Continued = m.Spec.format(), nil // the parts say who continued them
	listed, err := journal.Create(filepath.Join(dir, index.File))
	if err == nil {
		err = writeListed(listed, dir, manifestFile, m, "  ")
	}
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: gather")
	}
	if err := listed.Close(); err != nil {
		return nil, errors.Wrap(err, "pollen: gather")
	}
	return Open(dir, options...)
}

// relative is the path of a place from a folder, by which both can be moved together; where there
// is none, the absolute one.
func relative(dir, place string) (string, error) {
	place, err := filepath.Abs(place)
	if err != nil {
		return "", errors.Wrap(err, "pollen: gather")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", errors.Wrap(err, "pollen: gather")
	}
	if path, err := filepath.Rel(dir, place); err == nil {
		return path, nil
	}
	return place, nil
}

// chainOf identifies a chain: with the same number and seed, it is the same.
type chainOf struct {
	seed   uint64
	number int
}

// gathered is the manifest of the runs together.
func gathered(parts []string) (*Manifest, error) {
	var all *Manifest
	holder := map[chainOf]string{}
	for _, part := range parts {
		m, err := ReadManifest(part)
		if err != nil {
			return nil, err
		}
		if len(m.Parts) > 0 {
			return nil, invalid("gather %s: it was gathered itself: gather its parts", part)
		}
		if all == nil {
			all = m
		} else if what := m.differsFrom(all); what != "" {
			return nil, invalid("gather: %s and %s are not of one posterior: %s", parts[0], part, what)
		}
		for i := range m.Spec.Chains {
			chain := chainOf{m.Spec.Seed, m.Spec.FirstChain + i}
			if other, taken := holder[chain]; taken && other == part {
				return nil, invalid("gather: %s is there twice", part)
			} else if taken {
				return nil, invalid("gather: chain %d of seed %d is in both %s and %s", chain.number, chain.seed, other, part)
			}
			holder[chain] = part
		}
		all.Spec.FirstChain = min(all.Spec.FirstChain, m.Spec.FirstChain)
		if all.Spec.Start != m.Spec.Start {
			all.Spec.Start = "" // the parts have theirs
		}
	}
	all.Spec.Chains = len(holder)
	return all, nil
}

// differsFrom says what keeps two runs from being parts of one, "" if nothing does.
func (m *Manifest) differsFrom(other *Manifest) string {
	if name, first, second := other.Spec.difference(m.Spec, "seed", "chains", "first-chain", "start"); name != "" {
		return fmt.Sprintf("%s is %q in the first, %q in the second", name, first, second)
	}
	data, theirs := m.Data, other.Data
	data.Name = theirs.Name
	if data.Content != "" { // the files they came from do not matter
		data.Hashes, theirs.Hashes = nil, nil
	}
	if fmt.Sprint(data) != fmt.Sprint(theirs) { // maps are printed in the order of their keys
		return fmt.Sprintf("the data %s are not the same in the two", m.Data.Name)
	}
	return ""
}

// copyRun copies what is needed to predict with a run, which may be sampling: the files that there
// are, the samples that its index lists, and its manifest at last.
func copyRun(to, from string) error {
	run, err := Open(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, filepath.Dir(checkpointFile)), 0o755); err != nil {
		return errors.Wrap(err, "pollen: gather")
	}
	if err := os.MkdirAll(filepath.Join(to, samplesDir), 0o755); err != nil {
		return errors.Wrap(err, "pollen: gather")
	}
	// In this order: a process that writes lists only samples after its checkpoint.
	for _, name := range []string{checkpointFile, index.File, metricsFile, diagnosticsFile, calibrationFile, outcomeFile} {
		if err := copyFile(to, from, name); err != nil && !os.IsNotExist(errors.Cause(err)) {
			return err
		}
	}
	files, err := run.listSamples()
	if err != nil {
		return err
	}
	copied, err := readIndex(to)
	if err != nil && run.manifest.Format >= sealedFormat {
		return err
	}
	for _, f := range files {
		name := samplesDir + "/" + filepath.Base(f.path)
		if copied != nil && copied.Lines[name].Sum == "" {
			continue // it came later
		}
		if err := copyFile(to, from, name); err != nil {
			return err
		}
	}
	if copied != nil && run.manifest.Spec.Keep > 0 {
		for _, name := range copied.Names {
			place := filepath.FromSlash(name)
			_, err := os.Stat(filepath.Join(to, place))
			if copied.Lines[name].Sum != "" && os.IsNotExist(err) && wasDropped(filepath.Join(from, place)) {
				return run.droppedMeanwhile()
			}
		}
	}
	return copyFile(to, from, manifestFile)
}

func copyFile(to, from, name string) error {
	name = filepath.FromSlash(name)
	content, err := os.ReadFile(filepath.Join(from, name))
	if err == nil {
		err = file.Write(filepath.Join(to, name), content)
	}
	return errors.Wrap(err, "pollen: gather")
}

// places are the folders of a gathered run's parts.
func (r *Run) places() []string {
	var places []string
	for _, place := range r.manifest.Parts {
		if place = filepath.FromSlash(place); !filepath.IsAbs(place) {
			place = filepath.Join(r.dir, place)
		}
		places = append(places, place)
	}
	return places
}

// Parts are the runs that were gathered into this one; nil if it was not gathered.
func (r *Run) Parts() ([]*Run, error) {
	var parts []*Run
	for _, place := range r.places() {
		part, err := Open(place)
		if err != nil {
			return nil, errors.WithMessagef(err, "%s was gathered", r.dir)
		}
		part.environment, part.left = r.environment, r.left
		parts = append(parts, part)
	}
	return parts, nil
}
