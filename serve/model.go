package serve

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// Model is a run, and the name and version under which a Server answers with it.
type Model struct {
	// Name is part of paths such as /v2/models/NAME/infer. "" is the base name of the run's
	// directory.
	Name string
	// Version tells several runs of one name apart. "" is "1".
	Version string
	Run     *bayes.Run
	// FloatMax is the largest value of floating-point pixels in arrays, OtherColumns are columns of
	// CSV files that are not read, see datasets.Options.
	FloatMax     float64
	OtherColumns []string
}

// arrays returns the options with which files of arrays are read.
func (m *Model) arrays() datasets.Options {
	d := m.Run.Manifest().Data
	return datasets.Options{
		Channels: d.Channels, Height: d.Height, Width: d.Width, Crop: d.Crop, Bits: d.Bits, FloatMax: m.FloatMax, OtherColumns: m.OtherColumns,
	}
}

// maxModelName is the largest size in bytes of a model's name or version, the limit for a file's
// name.
const maxModelName = 255

// named returns a copy of the models with names and versions, or an OptionError.
func named(list []Model) ([]Model, error) {
	if len(list) == 0 {
		return nil, invalid("models", "must be at least one, got none")
	}
	list = slices.Clone(list)
	for i := range list {
		m := &list[i]
		if m.Run == nil {
			return nil, invalid("models", "model %d must have a run", i)
		}
		m.Name = cmp.Or(m.Name, filepath.Base(m.Run.Dir()))
		m.Version = cmp.Or(m.Version, "1")
		for _, text := range []string{m.Name, m.Version} {
			if !isModelName(text) {
				return nil, invalid("models", "a name or version must be printable text of 1 to %d bytes without slashes, got %.300q", maxModelName, text)
			}
		}
		same := func(other Model) bool { return other.Name == m.Name && other.Version == m.Version }
		if slices.ContainsFunc(list[:i], same) {
			return nil, invalid("models", "must have different names or versions, got %s version %s twice", m.Name, m.Version)
		}
	}
	return list, nil
}

func isModelName(text string) bool {
	bad := func(r rune) bool { return r == '/' || !unicode.IsPrint(r) }
	return text != "" && text != "." && text != ".." && len(text) <= maxModelName && utf8.ValidString(text) && !strings.ContainsFunc(text, bad)
}
