package checksum

import (
	"bytes"
	"encoding/json"

	"github.com/pkg/errors"
)

// JSON is the text of a value that is a JSON object with members, sealed: the seal is its last
// member.
func JSON(value any, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, errors.Wrap(err, "seal")
	}
	object := bytes.TrimSuffix(bytes.TrimRight(text.Bytes(), "\n"), []byte("}"))
	member := `,"` + Key + `":"` + Blank + `"}` + "\n"
	if indent != "" {
		object = bytes.TrimSuffix(object, []byte("\n"))
		member = ",\n" + indent + `"` + Key + `": "` + Blank + "\"\n}\n"
	}
	content := append(object, member...)
	_, err := Close(content, len(content))
	return content, err
}
