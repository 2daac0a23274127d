package config

import (
	"path/filepath"
	"strings"
)

// modelText returns the content of a network file, or the name of a network. A file is a list of
// layers: one that is empty, or has only a word, must not become a network of that name.
func modelText(name string) (string, error) {
	text, err := networkText(name)
	if extension := filepath.Ext(name); err != nil || extension != ".yaml" && extension != ".yml" {
		return text, err
	}
	if strings.TrimSpace(text) == "" {
		return "", Usagef("pollen: model %s: the network file is empty, must be a list of layers", name)
	}
	if !strings.ContainsAny(text, "\n{[:") {
		text += "\n" // which distinguishes it from a name
	}
	return text, nil
}
