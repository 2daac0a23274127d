package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/cluster"
)

// manifestFile is what a run's manifest is called: it can be given as a configuration.
const manifestFile = "manifest.json"

// settings are what a run is made from, as text: a pollen.Spec, data and device. Flags,
// configuration files and the notes of manifests have the same names.
type settings struct {
	text   map[string]string
	data   dataFlags
	device deviceFlags
	plan   cluster.Plan   // of the tasks that a file and its flags describe
	flags  *pflag.FlagSet // that set all of these
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
	f.IntVar(&s.plan.Parts, "parts", 1, "tasks that share the chains, see --task")
	s.flags = f
}

// layered are the defaults, then the file, then the flags that were given.
func layered(given *pflag.FlagSet, file string) (*settings, error) {
	s := &settings{}
	flags := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	flags.SortFlags = false // errors list the names in the order of the help
	s.bind(flags)
	if file != "" {
		if err := s.read(file); err != nil {
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

// read sets the flags from a file: YAML with their names as keys, and a grid; or a manifest.
func (s *settings) read(path string) error {
	if filepath.Base(path) == manifestFile {
		return readManifest(filepath.Dir(path), s.flags)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "train: config")
	}
	var fields, second yaml.MapSlice
	decoder := yaml.NewDecoder(bytes.NewReader(content), yaml.UseOrderedMap())
	if err := decoder.Decode(&fields); err != nil && err != io.EOF {
		return errors.Errorf("train: config %s: %s", path, yaml.FormatError(err, false, false))
	}
	if err := decoder.Decode(&second); err != io.EOF {
		return errors.Errorf("train: config %s: more than one document", path)
	}
	for _, field := range fields {
		if field.Key == "grid" {
			s.plan.Grid, err = readGrid(field.Value)
		} else {
			err = setField(s.flags, fmt.Sprint(field.Key), field.Value)
		}
		if err != nil {
			return errors.Wrapf(err, "train: config %s", path)
		}
	}
	return nil
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

// setField sets a flag to a value of a file.
func setField(flags *pflag.FlagSet, name string, value any) error {
	f := flags.Lookup(name)
	if f == nil {
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return errors.Errorf("no key %q; there are %s", name, strings.Join(names, ", "))
	}
	text := fmt.Sprint(value)
	switch value.(type) {
	case string, int64, uint64, float64:
		if flags.Set(name, text) == nil {
			return nil
		}
	}
	return errors.Errorf("%s is %s, wants %s", name, text, kindOf(f))
}

// deviceFlags name a device.
type deviceFlags struct{ pollen.DeviceOptions }

func (d *deviceFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.Name, "device", "auto", "device: "+strings.Join(pollen.DeviceNames(), " or "))
	f.IntVar(&d.Threads, "threads", 0, "threads of the cpu device, 0 for all")
	f.StringVar(&d.Precision, "precision", "", "operands of the matrix products on GPUs: "+strings.Join(pollen.Precisions(), ", ")+" (default fp32)")
}
