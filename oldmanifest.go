package pollen

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
)

// oldManifest is the manifest of runs made before it had a format number: of grey images of 28x28,
// by the name of their data set, with some attributes of methods apart from the text of the others.
type oldManifest struct {
	Config struct {
		Model, Data, Sampler, Schedule, Device, Precision, Gamma string

		DataDir      string `json:"data-folder"`
		Subset       int
		Batch        int
		Epochs       int
		BurnIn       *int `json:"burn-in"`
		Samples      int
		Cycles       int
		Anchor       int
		Chains       int
		Prior        *string
		Temperature  *float64
		Temperatures string
		Alpha        *float64
		Lambda       *float64
		Seed         uint64
	}
	Device     string
	DataSize   int
	Steps      int
	Parameters int
	DataHashes map[string]string
	Watched    string
	Mean, Std  float64
	Build
}

// oldSide is the height and width of images in those runs.
const oldSide = 28

func parseOldManifest(content []byte) (*Manifest, error) {
	var old oldManifest
	if err := json.Unmarshal(content, &old); err != nil {
		return nil, errors.Wrap(err, "pollen: old manifest")
	}
	spec, err := old.spec()
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: old manifest")
	}
	m := &Manifest{
		Spec: spec, Device: old.Device, Steps: old.Steps, Parameters: old.Parameters, Watched: old.Watched, Build: old.Build,
		Notes: map[string]string{"data": old.Config.Data},
		Data: Data{
			Name: old.Config.Data, Size: old.DataSize, Channels: 1, Height: oldSide, Width: oldSide,
			Mean: []float64{old.Mean}, Std: []float64{old.Std}, Hashes: old.DataHashes,
		},
	}
	for name, value := range map[string]string{
		"data-folder": old.Config.DataDir, "device": old.Config.Device, "precision": old.Config.Precision,
	} {
		if value != "" {
			m.Notes[name] = value
		}
	}
	for _, known := range datasets.List(datasets.Options{Offline: true}) {
		if known.Name == old.Config.Data {
			m.Data.ClassNames = known.ClassNames
		}
	}
	if m.Data.ClassNames == nil {
		return nil, errors.Errorf("pollen: old manifest: no data set %q", old.Config.Data)
	}
	return m, nil
}

// spec converts the configuration to its present form.
func (o *oldManifest) spec() (s Spec, err error) {
	c := &o.Config
	s = Spec{
		Network: c.Model, Batch: c.Batch, Epochs: c.Epochs, Chains: c.Chains, Seed: c.Seed, Subset: c.Subset, BurnIn: c.BurnIn,
		Samples: c.Samples, Cycles: c.Cycles, Anchor: c.Anchor, Temperature: c.Temperature,
	}
	texts := map[string]string{"method": o.method(), "schedule": c.Schedule, "temperatures": c.Temperatures}
	if c.Prior != nil {
		texts["prior"] = *c.Prior
	}
	for name, text := range texts {
		if text == "" {
			continue
		}
		if err := s.Set(name, text); err != nil {
			return s, err
		}
	}
	return s.Resolve()
}

// method is the sampler with the attributes that used to be separate settings.
func (o *oldManifest) method() string {
	c := &o.Config
	var attributes []string
	number := func(name string, value *float64) {
		if value != nil {
			attributes = append(attributes, name+"="+strconv.FormatFloat(*value, 'g', -1, 64))
		}
	}
	number("alpha", c.Alpha)
	if c.Sampler == "psgld" {
		number("lambda", c.Lambda)
	} else {
		number("damping", c.Lambda)
	}
	if c.Gamma != "" {
		attributes = append(attributes, "gamma="+c.Gamma)
	}
	if len(attributes) == 0 {
		return c.Sampler
	}
	return c.Sampler + ":" + strings.Join(attributes, ",")
}
