package config

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/devices"
	"github.com/pollen-ml/pollen/internal/cluster"
	"github.com/pollen-ml/pollen/internal/file"
)

// ManifestFile is the name of a run's manifest, which can be used as a configuration.
const ManifestFile = "manifest.json"

// Settings are the settings of a run as text: of its bayes.Spec, data and device. Flags,
// configuration files and the notes of manifests use the same names.
type Settings struct {
	Text   map[string]string // settings of a Spec, by name
	Data   Data
	Device devices.Options
	Plan   cluster.Plan   // the tasks that they are divided into
	flags  *pflag.FlagSet // flags that set all of these

	noted map[string]string // paths of network files in the notes of a manifest, by the files' contents
}

// settingValue is the flag value for a setting of a Spec.
type settingValue struct {
	bayes.Setting
	to map[string]string
}

func (v settingValue) String() string {
	if v.to == nil {
		return ""
	}
	return v.to[v.Name]
}

// Set checks only the type of the value. Spec checks the values together.
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

// Bind binds a flag for each setting.
func (s *Settings) Bind(f *pflag.FlagSet) {
	s.Text = map[string]string{}
	for i, setting := range bayes.Settings() {
		f.Var(settingValue{setting, s.Text}, setting.Name, setting.Usage)
		if i == 0 {
			s.Data.bind(f)
			s.Data.bindSplits(f)
		}
	}
	BindDevice(f, &s.Device)
	f.IntVar(&s.Plan.Parts, "parts", 1, "number of tasks that share the chains, see --task")
	s.flags = f
}

// BindDevice binds the flags that select a device.
func BindDevice(f *pflag.FlagSet, d *devices.Options) {
	f.StringVar(&d.Name, "device", "auto", "device: "+strings.Join(devices.Names(), ", "))
	f.IntVar(&d.Threads, "threads", 0, "threads of the cpu device (default: all)")
	f.StringVar(&d.Precision, "precision", "", "operands of matrix products on GPUs: "+strings.Join(devices.Precisions(), ", ")+" (default fp32)")
}

// Layered returns the defaults, overridden by the file, overridden by the flags of the command that
// were given.
func Layered(given *pflag.FlagSet, file string) (*Settings, error) {
	s := &Settings{}
	flags := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	flags.SortFlags = false // errors list the names in the order of the help
	s.Bind(flags)
	if file != "" {
		if err := s.read(file, given); err != nil {
			return nil, UsageError{err}
		}
	}
	var failed error
	given.Visit(func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil && failed == nil {
			failed = flags.Set(f.Name, f.Value.String())
		}
	})
	return s, AsUsageError(failed)
}

// Spec returns the bayes.Spec of the settings, after every check that needs no data.
func (s *Settings) Spec() (spec bayes.Spec, err error) {
	spec.Seed = 1
	for _, setting := range bayes.Settings() {
		text, given := s.Text[setting.Name]
		if !given {
			continue
		}
		switch setting.Name {
		case "model", "head":
			if text, err = modelText(setting.Name, text); err != nil {
				return spec, err
			}
		case "start":
			if _, err := os.Stat(text); err == nil { // else the error has the path as it was given
				text = Absolute(text)
			}
		}
		if err := spec.Set(setting.Name, text); err != nil {
			return spec, AsUsageError(err)
		}
	}
	_, err = spec.Resolve()
	return spec, AsUsageError(err)
}

// maxFile is the largest size of a configuration or network file, in bytes.
const maxFile = file.MaxJSON

// read sets the flags from a YAML file, which may have a grid, or from a manifest.
func (s *Settings) read(path string, command *pflag.FlagSet) error {
	if filepath.Base(path) == ManifestFile {
		return s.readManifest(filepath.Dir(path))
	}
	content, err := file.Read(path, maxFile)
	if err != nil {
		return errors.Wrap(err, "pollen: config") // which names the file
	}
	err = setFlags(content, s.flags, command, map[string]func(any) error{"grid": s.readGrid})
	return errors.Wrapf(err, "pollen: config %s", path)
}

// readManifest sets the flags to a run's values. Network files are those that the manifest has: at
// their paths, which it notes, there may be others by now.
func (s *Settings) readManifest(dir string) error {
	m, err := bayes.ReadManifest(dir)
	if err != nil {
		return err
	}
	values := m.Spec.Texts()
	s.noted = map[string]string{}
	for name, note := range m.Notes {
		if slices.Contains(networkSettings, name) {
			if values[name] != "" {
				s.noted[values[name]] = note
			}
		} else {
			values[name] = note
		}
	}
	if m.Model != nil {
		if values["model"], err = m.Network(dir); err != nil {
			return err
		}
	}
	for name, text := range values {
		if s.flags.Lookup(name) == nil {
			continue
		}
		if err := s.flags.Set(name, text); err != nil {
			return errors.Wrapf(err, "pollen: %s", dir)
		}
	}
	return nil
}
