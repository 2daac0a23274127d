package config

import (
	"os"
	"path/filepath"
	"strings"
)

// maxNetworkFile is the largest size of a network file in bytes, as of layers.Parse.
const maxNetworkFile = 1 << 17

// modelText returns the content of a network file, or the name of a network. A file is a list of
// layers: one that is empty, or has only a word, must not become a network of that name.
func modelText(name string) (string, error) {
	if extension := filepath.Ext(name); extension != ".yaml" && extension != ".yml" {
		return name, nil
	}
	// Before the file is read: a large one is no network.
	if info, err := os.Stat(name); err == nil && info.Size() > maxNetworkFile {
		return "", Usagef("pollen: model %s: a network file must have at most %d bytes, got %d", name, maxNetworkFile, info.Size())
	}
	text, err := networkText(name)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(text) == "" {
		return "", Usagef("pollen: model %s: the network file is empty, must be a list of layers", name)
	}
	if !strings.ContainsAny(text, "\n{[:") {
		text += "\n" // which distinguishes it from a name
	}
	return text, nil
}
