// Package config defines the flags of package command that select data, devices and settings, and
// sets them from configuration files. Quoted quotes the words of commands that a program prints.
//
// A configuration file is one YAML document whose keys are names of flags. Unknown keys, values of
// the wrong type and a second document are errors. A wrong flag or file is a UsageError.
package config
