package pollen

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
)

// A run's folder holds these files, and the figures and the page made from them.
const (
	manifestFile    = "manifest.json"
	metricsFile     = "metrics.jsonl"
	diagnosticsFile = "diagnostics.json"
	calibrationFile = "calibration.json"
	samplesDir      = "samples"
	statesDir       = "states" // that SWAG's Gaussian is made of
)

// The numbers of formats; docs/formats.md describes all of them. Manifests without a number are
// older. Runs have checksums and an index since sealedFormat, which is written still; those that
// drop samples have keepingFormat.
const (
	plainFormat   = 2
	sealedFormat  = 3
	keepingFormat = 4
)

// format is the number of the format of a new run: the lowest one that has what it needs.
func (s Spec) format() int {
	if s.Keep > 0 {
		return keepingFormat
	}
	return sealedFormat
}

// Manifest describes a run: enough to repeat it.
type Manifest struct {
	Format     int               `json:"format"`
	Spec       Spec              `json:"config"`
	Notes      map[string]string `json:"notes,omitempty"` // the caller's, see WithNotes
	Data       Data              `json:"data"`
	Device     string            `json:"device"`
	Steps      int               `json:"steps"`
	Parameters int               `json:"parameters"`
	Watched    string            `json:"watched"`         // the weight whose trace is kept
	Parts      []string          `json:"parts,omitempty"` // of a gathered run: its parts' folders, from its own
	Build
	Continued []Continued `json:"continued,omitempty"` // by others than the build and the device above
}

// Data describes what a run is trained on, and so what it can predict.
type Data struct {
	Name       string            `json:"name"`
	Size       int               `json:"size"` // examples trained on
	Channels   int               `json:"channels"`
	Height     int               `json:"height"`
	Width      int               `json:"width"`
	ClassNames []string          `json:"classNames"`
	Mean       []float64         `json:"mean"` // of pixel/255, by channel, of the images trained on
	Std        []float64         `json:"std"`
	Content    string            `json:"content,omitempty"` // SHA-256 of the images and labels trained on
	Hashes     map[string]string `json:"hashes,omitempty"`  // of the files they came from
}

// Classes is how many classes there are.
func (d Data) Classes() int { return len(d.ClassNames) }

// describeData is a manifest's description of data.
func describeData(d *datasets.Dataset) Data {
	return Data{
		Name: d.Name, Size: d.Len(), Channels: d.Channels, Height: d.Height, Width: d.Width, ClassNames: d.ClassNames,
		Mean: d.Mean, Std: d.Std, Content: contentHash(d), Hashes: d.Hashes,
	}
}

// ButSeed is a text that runs share which differ only in their seed.
func (m Manifest) ButSeed() string {
	texts := m.Spec.Texts()
	delete(texts, "seed")
	return fmt.Sprint(m.Data.Name, m.Data.Content, m.Data.Hashes, texts) // maps are printed in the order of their keys
}

// ReadManifest reads the manifest of a run's folder, of this format or an older one. A folder
// without one gives NotARunError.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, &NotARunError{dir, err}
	}
	m, err := parseManifest(content)
	if err == nil {
		if sealed := checkSeal(content, m.Format); sealed != nil {
			return nil, damaged(path, sealed)
		}
		err = errors.WithMessage(m.check(), "pollen: manifest")
	}
	if err != nil {
		if _, sealed := checksum.Check(content, len(content)); sealed != nil && errors.Cause(sealed) != checksum.ErrNone {
			err = sealed // what is wrong is not what was written
		}
		return nil, damaged(path, err)
	}
	return m, nil
}

// check refuses what no run writes, and fills in what the specification leaves out.
func (m *Manifest) check() (err error) {
	network := m.Spec.Network
	if m.Spec, err = m.Spec.Resolve(); err != nil {
		return err
	}
	m.Spec.Network = network
	d := &m.Data
	switch {
	case d.Size < 1:
		return errors.Errorf("data: size is %d, wants at least 1", d.Size)
	case d.Channels < 1 || d.Height < 1 || d.Width < 1:
		return errors.Errorf("data: images of %dx%dx%d, wants at least 1x1x1", d.Channels, d.Height, d.Width)
	case len(d.Mean) != d.Channels || len(d.Std) != d.Channels:
		return errors.Errorf("data: %d means and %d deviations, wants one for each of %d channels", len(d.Mean), len(d.Std), d.Channels)
	case d.Classes() < 2:
		return errors.Errorf("data: %d classNames, wants at least 2", d.Classes())
	}
	for c := range d.Channels {
		if mean, std := d.Mean[c], d.Std[c]; mean-mean != 0 || !(std > 0 && std < math.Inf(1)) {
			return errors.Errorf("data: mean %v and deviation %v in channel %d, wants finite numbers, deviations above 0", mean, std, c)
		}
	}
	return nil
}

func parseManifest(content []byte) (*Manifest, error) {
	var header struct{ Format int }
	if err := json.Unmarshal(content, &header); err != nil {
		return nil, errors.Wrap(err, "pollen: manifest")
	}
	m := &Manifest{}
	switch header.Format {
	case 0:
		return parseOldManifest(content)
	case plainFormat, sealedFormat, keepingFormat:
		if err := json.Unmarshal(content, m); err != nil {
			return nil, errors.Wrap(err, "pollen: manifest")
		}
		return m, nil
	}
	return nil, errors.Errorf("pollen: manifest: format %d, wants at most %d: a newer version wrote it", header.Format, keepingFormat)
}
