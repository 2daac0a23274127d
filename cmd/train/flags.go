package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/config"
)

// manifestFile is what a run's manifest is called: it can be given as a configuration.
const manifestFile = "manifest.json"

// settings are what a run is made from, as text: a pollen.Spec, data and device. Flags,
// configuration files and the notes of manifests have the same names.
type settings struct {
	text   map[string]string
	data   dataFlags
	device deviceFlags
}

// settingValue is a flag for a setting of a Spec.
type settingValue struct {
	pollen.Setting
	to map[string]string
}

func (v settingValue) String() string {
	if v.to == nil {
		return ""
	}
	return v.to[v.Name]
}

// Set refuses values of the wrong kind; their meaning is checked later, with the others.
func (v settingValue) Set(text string) error {
	var err error
	switch v.Kind {
	case "int":
		_, err = strconv.Atoi(text)
	case "uint64":
		_, err = strconv.ParseUint(text, 10, 64)
	case "float":
		_, err = strconv.ParseFloat(text, 64)
	}
	v.to[v.Name] = text
	return err
}

func (v settingValue) Type() string { return v.Kind }

// bind makes a flag for each setting.
func (s *settings) bind(f *pflag.FlagSet) {
	s.text = map[string]string{}
	for i, setting := range pollen.Settings() {
		f.Var(settingValue{setting, s.text}, setting.Name, setting.Usage)
		if i == 0 {
			s.data.bind(f)
			s.data.bindSplits(f)
		}
	}
	s.device.bind(f)
}

// layered are the defaults, then the file, then the flags that were given.
func layered(given *pflag.FlagSet, file string) (*settings, error) {
	s := &settings{}
	flags := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	flags.SortFlags = false // errors list the names in the order of the help
	s.bind(flags)
	if file != "" {
		if err := readConfig(file, flags); err != nil {
			return nil, usageError{err}
		}
	}
	var failed error
	given.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil && failed == nil {
			failed = flags.Set(f.Name, f.Value.String())
		}
	})
	return s, wrapUsage(failed)
}

// spec is the pollen.Spec of the settings.
func (s *settings) spec() (spec pollen.Spec, err error) {
	spec.Seed = 1
	for _, setting := range pollen.Settings() {
		text, given := s.text[setting.Name]
		if !given {
			continue
		}
		if setting.Name == "model" {
			if text, err = networkText(text); err != nil {
				return spec, err
			}
		}
		if err := spec.Set(setting.Name, text); err != nil {
			return spec, wrapUsage(err)
		}
	}
	resolved, err := spec.Resolve()
	return resolved, wrapUsage(err)
}

// networkText is the content of a network file, or the name of a network.
func networkText(name string) (string, error) {
	switch filepath.Ext(name) {
	case ".yaml", ".yml":
		content, err := os.ReadFile(name)
		return string(content), errors.Wrap(err, "train: model")
	}
	return name, nil
}

// readConfig sets flags from a file: YAML with their names as keys, or a manifest to repeat.
func readConfig(path string, flags *pflag.FlagSet) error {
	if filepath.Base(path) == manifestFile {
		return readManifest(filepath.Dir(path), flags)
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = config.Set(content, flags)
	}
	return errors.Wrapf(err, "train: config %s", path)
}

// readManifest sets flags as a run had them.
func readManifest(folder string, flags *pflag.FlagSet) error {
	m, err := pollen.ReadManifest(folder)
	if err != nil {
		return err
	}
	values := m.Spec.Texts()
	for name, text := range m.Notes {
		values[name] = text
	}
	for name, text := range values {
		if flags.Lookup(name) == nil {
			continue
		}
		if err := flags.Set(name, text); err != nil {
			return errors.Wrapf(err, "train: %s", folder)
		}
	}
	return nil
}

// deviceFlags name a device.
type deviceFlags struct{ pollen.DeviceOptions }

func (d *deviceFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.Name, "device", "auto", "device: "+strings.Join(pollen.DeviceNames(), " or "))
	f.IntVar(&d.Threads, "threads", 0, "threads of the cpu device, 0 for all")
	f.StringVar(&d.Precision, "precision", "", "operands of the matrix products on GPUs: "+strings.Join(pollen.Precisions(), ", ")+" (default fp32)")
}
