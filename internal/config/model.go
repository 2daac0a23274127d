package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/file"
)

// maxNetworkFile is the largest size of a network file in bytes, as of layers.Parse.
const maxNetworkFile = 1 << 17

// modelText returns the content of a network file, or the name of a network or of an ONNX file, for
// the flag --model or --head. A network file is a list of layers: one that is empty, or has only a
// word, must not become a network of that name.
func modelText(flag, name string) (string, error) {
	if !isNetworkFile(name) {
		if flag == "model" {
			return name, checkName(name)
		}
		return name, nil // a head's description, which package bayes checks
	}
	// Before the file is read: a large one is no network.
	if info, err := os.Stat(name); err == nil && info.Size() > maxNetworkFile {
		return "", Usagef("pollen: %s %s: a network file must have at most %d bytes, got %d", flag, name, maxNetworkFile, info.Size())
	}
	text, err := file.Read(name, maxFile)
	if os.IsNotExist(errors.Cause(err)) {
		return "", noFile(flag, name)
	}
	if err != nil {
		return "", errors.Wrapf(err, "pollen: %s", flag)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return "", Usagef("pollen: %s %s: the network file is empty, must be a list of layers", flag, name)
	}
	if !bytes.ContainsAny(text, "\n{[:") {
		text = append(text, '\n') // which distinguishes it from a name
	}
	return string(text), nil
}

// networkSettings are the settings that can be network files.
var networkSettings = []string{bayes.NetworkNote, "head"}

// NoteNetworkFiles adds the paths of the network files that the settings name, whose contents
// become the values of the settings.
func (s *Settings) NoteNetworkFiles(notes map[string]string) {
	for _, setting := range networkSettings {
		switch name := s.Text[setting]; {
		case isNetworkFile(name):
			notes[setting] = Absolute(name)
		case s.noted[name] != "":
			notes[setting] = s.noted[name]
		}
	}
}

// isNetworkFile reports whether a name refers to a network file.
func isNetworkFile(name string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

// networkFiles returns the network files that the settings of all tasks name, each once.
func (s *Settings) networkFiles() []string {
	var names []string
	for _, setting := range networkSettings {
		values := []string{s.Text[setting]}
		for _, axis := range s.Plan.Grid {
			if axis.Setting == setting {
				values = axis.Values
			}
		}
		names = append(names, values...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return !isNetworkFile(name) })
}

// checkName refuses models that are files, but neither network files nor ONNX files. Whether there
// is a network of a name is not known here.
func checkName(name string) error {
	if strings.ContainsAny(name, "\n{[:") {
		return nil // the content of a network file, which a manifest has
	}
	extension := filepath.Ext(name)
	if strings.EqualFold(extension, ".onnx") {
		if _, err := os.Stat(name); os.IsNotExist(err) {
			return noFile("model", name)
		}
		return nil
	}
	_, notDigits := strconv.Atoi(strings.TrimPrefix(extension, ".")) // resnet20-frn-x0.5 has no extension
	if extension != "" && notDigits != nil {
		return Usagef("pollen: model must be the name of a network, a network file FILE.yaml or an ONNX file FILE.onnx, got %s: "+
			"torch.onnx.export writes an ONNX file of a network in PyTorch, the method export of one in Keras", name)
	}
	return nil
}

func noFile(flag, name string) error { return Usagef("pollen: %s: there is no file %s", flag, name) }
