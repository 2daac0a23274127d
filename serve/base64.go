package serve

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/pkg/errors"
)

// encodedImage is an image in JSON: base64Text, or in one or two objects of a single member, such
// as {"b64": "..."} and {"image_bytes": {"b64": "..."}}.
type encodedImage []byte

// UnmarshalJSON implements json.Unmarshaler.
func (e *encodedImage) UnmarshalJSON(content []byte) error {
	return unmarshalMember(content, (*[]byte)(e), func(b *innerImage) []byte { return *b })
}

// innerImage is an encodedImage in at most one object.
type innerImage []byte

// UnmarshalJSON implements json.Unmarshaler.
func (e *innerImage) UnmarshalJSON(content []byte) error {
	return unmarshalMember(content, (*[]byte)(e), func(b *base64Text) []byte { return *b })
}

// unmarshalMember decodes a base64Text, or the only member of an object.
func unmarshalMember[T any](content []byte, to *[]byte, of func(*T) []byte) error {
	if !bytes.HasPrefix(content, []byte{'{'}) {
		return (*base64Text)(to).UnmarshalJSON(content)
	}
	var members map[string]T
	if err := json.Unmarshal(content, &members); err != nil {
		return err
	}
	if len(members) != 1 {
		return errors.Errorf(`must be base64 text or {"b64": "base64"}, got an object of %d members`, len(members))
	}
	for _, member := range members {
		*to = of(&member)
	}
	return nil
}

// base64Text is base64 text in JSON, of either alphabet, with or without padding, line breaks or
// the prefix of a data URI.
type base64Text []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *base64Text) UnmarshalJSON(content []byte) error {
	if !bytes.HasPrefix(content, []byte{'"'}) {
		return errors.Errorf("must be base64 text, got %s", kindOf(content))
	}
	var text string
	if err := json.Unmarshal(content, &text); err != nil {
		return err
	}
	decoded, err := decodeBase64(text)
	*b = decoded
	return err
}

// kindOf names the kind of a JSON value that is not a string.
func kindOf(content []byte) string {
	switch content[0] { // the decoder has checked that the JSON is valid
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 'n', 't', 'f':
		return string(content)
	}
	return "a number"
}

var plainBase64 = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", "\t", "", " ", "")

func decodeBase64(text string) ([]byte, error) {
	const scheme = "data:"
	if len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme) {
		head, data, found := strings.Cut(text, ",")
		if !found || !strings.HasSuffix(strings.ToLower(strings.TrimRight(head, " ")), ";base64") {
			return nil, errors.Errorf("a data URI must be of the form data:image/png;base64,..., got %.40q", text)
		}
		text = data
	}
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(plainBase64.Replace(text), "="))
}
