package checksum

import (
	"bytes"
	"encoding/json"

	"github.com/pkg/errors"
)

// JSON returns the JSON of a value, which must be an object with members, with a checksum as the
// last member.
func JSON(value any, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, errors.Wrap(err, "checksum")
	}
	object := bytes.TrimSuffix(bytes.TrimRight(text.Bytes(), "\n"), []byte("}"))
	member := `,"` + Key + `":"` + Blank + `"}` + "\n"
	if indent != "" {
		object = bytes.TrimSuffix(object, []byte("\n"))
		member = ",\n" + indent + `"` + Key + `": "` + Blank + "\"\n}\n"
	}
	content := append(object, member...)
	_, err := Fill(content, len(content))
	return content, err
}
