package detector

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/pkg/errors"
)

// vector is written to JSON as the base64 of its float32 numbers, little-endian.
type vector []float32

// MarshalJSON implements json.Marshaler.
func (v vector) MarshalJSON() ([]byte, error) {
	raw := make([]byte, 0, 4*len(v))
	for _, x := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	text, err := json.Marshal(raw)
	return text, errors.Wrap(err, "detector")
}

// UnmarshalJSON implements json.Unmarshaler. Numbers must be finite.
func (v *vector) UnmarshalJSON(text []byte) error {
	var raw []byte
	if err := json.Unmarshal(text, &raw); err != nil {
		return errors.Wrap(err, "detector")
	}
	if len(raw)%4 != 0 {
		return errors.Errorf("detector: numbers must have 4 bytes each, got %d bytes", len(raw))
	}
	*v = make(vector, len(raw)/4)
	for i := range *v {
		x := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if x-x != 0 {
			return errors.Errorf("detector: number %d must be finite, got %v", i, x)
		}
		(*v)[i] = x
	}
	return nil
}
