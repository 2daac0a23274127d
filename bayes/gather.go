package bayes

import (
	"fmt"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/rundir"
)

// Gather makes one run of several parts, whose chains sample the same posterior, in a new or empty
// directory. The run refers to the directories of the parts, which are read whenever it is used;
// see GatherCopies. It is an InvalidError if parts differ in anything but seeds, chains, devices
// and where chains start, or two of them have the same chain. After an error, nothing of the new
// run stays.
func Gather(dir string, parts []string, options ...Option) (*Run, error) {
	return gather(dir, parts, false, options)
}

// GatherCopies is Gather with copies of the parts as they are now, so that the run stays the same
// when its parts continue or are removed.
func GatherCopies(dir string, parts []string, options ...Option) (*Run, error) {
	return gather(dir, parts, true, options)
}

func gather(dir string, parts []string, copied bool, options []Option) (*Run, error) {
	if len(parts) == 0 {
		return nil, invalid("gather %s: no runs to gather", dir)
	}
	e := environmentOf(options)
	if err := e.checkLevels(); err != nil {
		return nil, err
	}
	if err := rundir.CheckEmpty(dir); err != nil {
		return nil, err
	}
	m, err := gathered(parts)
	if err != nil {
		return nil, err
	}
	if err := rundir.Gather(dir, e.remark, func() (any, error) { return m, addParts(m, dir, parts, copied) }); err != nil {
		return nil, err
	}
	return Open(dir, options...)
}

// addParts adds the parts of a gathered run to its manifest, and copies what it needs of them.
func addParts(m *Manifest, dir string, parts []string, copied bool) error {
	if err := rundir.CopyModel(dir, parts[0]); err != nil {
		return err
	}
	m.Continued = nil // the parts have theirs
	for i, part := range parts {
		place := part
		if copied {
			place = filepath.Join(dir, rundir.PartsDir, fmt.Sprintf("%0*d", len(fmt.Sprint(len(parts)-1)), i))
			run, err := Open(part)
			if err != nil {
				return err
			}
			if err := rundir.Copy(place, run.reader()); err != nil {
				return err
			}
		}
		place, err := relative(dir, place)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, filepath.ToSlash(place))
	}
	return nil
}

// relative returns the path of a place relative to dir, so that both can be moved together, or the
// absolute path if there is none, such as between two drives of Windows.
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

// chainOf identifies a chain: chains with the same number and seed are the same.
type chainOf struct {
	seed   uint64
	number int
}

// gathered returns the manifest of a run with these parts: the manifest of the first, with the
// chains of all. It refuses parts of different posteriors, whose samples must not be averaged, and
// a chain that is given twice, which would count double.
func gathered(parts []string) (*Manifest, error) {
	var all *Manifest
	holder := map[chainOf]string{}
	for _, part := range parts {
		m, err := ReadManifest(part)
		if err != nil {
			return nil, err
		}
		if len(m.Parts) > 0 {
			return nil, invalid("gather %s: it is a gathered run: gather its parts", part)
		}
		if m.Teacher != nil {
			return nil, invalid("gather %s: it is a distilled run: gather the parts of its teacher, and distil that", part)
		}
		if all == nil {
			all = m
		} else if what := m.differsFrom(all); what != "" {
			return nil, invalid("gather: %s and %s are not of one posterior: %s", parts[0], part, what)
		}
		for i := range m.Spec.Chains {
			chain := chainOf{m.Spec.Seed, m.Spec.FirstChain + i}
			if other, taken := holder[chain]; taken && other == part {
				return nil, invalid("gather: %s is given twice", part)
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

// differsFrom describes a difference that keeps two runs from being parts of one; "" if there is
// none.
func (m *Manifest) differsFrom(other *Manifest) string {
	apart := []string{"seed", "chains", "first-chain", "start"}
	if m.Model != nil && other.Model != nil {
		if m.Model.Digest != other.Model.Digest {
			return "they began with different models"
		}
		apart = append(apart, "model") // the place of the file
	}
	if name, first, second := other.Spec.difference(m.Spec, apart...); name != "" {
		return fmt.Sprintf("%s is %q in the first, %q in the second", name, first, second)
	}
	data, theirs := m.Data, other.Data
	data.Name = theirs.Name
	data.Hashes, theirs.Hashes = nil, nil // the files they came from do not matter
	data.Remarks, theirs.Remarks = nil, nil
	if fmt.Sprint(data) != fmt.Sprint(theirs) { // maps are printed in the order of their keys
		return fmt.Sprintf("the data %s are not the same in the two", m.Data.Name)
	}
	return ""
}
