package config

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// maxBytes is the size limit of a configuration file. One with all settings has a few kilobytes.
const maxBytes = 1 << 20

// setFlags sets flags from YAML text whose keys are their names. Keys in others are not flags;
// their values are passed to the functions. Errors name keys that are flags of the command only.
func setFlags(content []byte, flags, command *pflag.FlagSet, others map[string]func(value any) error) error {
	if len(content) > maxBytes {
		return errors.Errorf("must have at most %[2]d bytes, got %[1]d", len(content), maxBytes)
	}
	var fields, second yaml.MapSlice
	decoder := yaml.NewDecoder(bytes.NewReader(content), yaml.UseOrderedMap())
	if err := decoder.Decode(&fields); err != nil && err != io.EOF {
		return errors.New(yaml.FormatError(err, false, false))
	}
	if err := decoder.Decode(&second); err != io.EOF {
		return errors.New("more than one document")
	}
	if len(fields) == 0 {
		return errors.New("must have at least one setting, such as \"method: sgld\", got none")
	}
	for _, field := range fields {
		name := fmt.Sprint(field.Key)
		set := others[name]
		if set == nil {
			set = func(value any) error { return setField(flags, command, name, value) }
		}
		if err := set(field.Value); err != nil {
			return err
		}
	}
	return nil
}

// setField sets a flag to a value from a file.
func setField(flags, command *pflag.FlagSet, name string, value any) error {
	f := flags.Lookup(name)
	if f == nil {
		if command.Lookup(name) != nil {
			return errors.Errorf("unknown key %q: it is a flag of the command line only, --%s", name, name)
		}
		var names []string
		flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		return errors.Errorf("unknown key %q%s; the keys are %s", name, hint(flags, name), strings.Join(names, ", "))
	}
	text := fmt.Sprint(value)
	switch value.(type) {
	case string, int64, uint64, float64:
		if flags.Set(name, text) == nil {
			return nil
		}
	}
	return errors.Errorf("%s must be %s, got %s", name, typeName(f), text)
}

// Listing formats items as wrapped lines of a help text, after a title.
func Listing(title string, items ...string) string {
	const indent, width = 11, 100
	if title != "" {
		title += ":"
	}
	text := fmt.Sprintf("\n%-*s", indent, title)
	length := indent
	for i, item := range items {
		if i < len(items)-1 {
			item += ", "
		}
		if length+len(item) > width {
			text = strings.TrimRight(text, " ") + "\n" + strings.Repeat(" ", indent)
			length = indent
		}
		text += item
		length += len(item)
	}
	return text
}

// typeName describes the values of a flag, for errors: "a number".
func typeName(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "int":
		return "an integer"
	case "uint64":
		return "a non-negative integer"
	case "float", "float64":
		return "a number"
	case "fraction":
		return "a fraction below 1, or 0 for none"
	case "float64Slice":
		return "a list of numbers, such as 0.1,0.2"
	default:
		return "a " + f.Value.Type()
	}
}
