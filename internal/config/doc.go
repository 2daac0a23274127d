// Package config sets flags from configuration files, and describes them.
//
// Policy: a file is one YAML document whose keys are the names of flags; a key that is no flag's
// name, a value of another kind and a second document are errors.
package config
