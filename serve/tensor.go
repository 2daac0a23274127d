package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
)

// imageInput is the name of the input of all models.
const imageInput = "image"

// tensor returns the images of a request as input of the network. tail has the bytes that follow
// the JSON.
func (b *backend) tensor(ctx context.Context, m *model, q *inferRequest, tail []byte, h *reservation) (images int, pixels []byte, err error) {
	wrong := func(format string, values ...any) (int, []byte, error) {
		return 0, nil, refuse(http.StatusBadRequest, format, values...)
	}
	if len(q.Inputs) != 1 || q.Inputs[0].Name != imageInput {
		var names []string
		for _, in := range q.Inputs {
			names = append(names, fmt.Sprintf("%.40q", in.Name))
		}
		return wrong("the inputs must be one, %q, got %d, %v", imageInput, len(names), names)
	}
	in := &q.Inputs[0]
	switch p := in.Parameters; {
	case p != nil && p.BinaryDataSize != nil && in.Data != nil:
		return wrong("input %s must have data or binary_data_size, got both", in.Name)
	case p != nil && p.BinaryDataSize != nil:
		if *p.BinaryDataSize != len(tail) {
			return wrong("input %s: binary_data_size must be the number of bytes after the JSON, %d, got %d", in.Name, len(tail), *p.BinaryDataSize)
		}
	case in.Data == nil:
		return wrong("input %s must have data or binary_data_size, got neither", in.Name)
	case len(tail) > 0:
		return wrong("input %s has data, but %d bytes follow the JSON", in.Name, len(tail))
	}
	layout, err := m.layout(in)
	if err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "input %s: %v", in.Name, err)
	}
	if images = in.Shape[0]; images > b.options.MaxImages {
		return 0, nil, b.tooMany()
	}
	if in.Datatype == typeBytes {
		return b.imageFiles(ctx, m, in, tail, h)
	}
	if err := h.reserve(3 * images * m.imageSize()); err != nil { // the values, pixels, and their copy in a batch
		return 0, nil, err
	}
	values, err := readValues(in, tail, images*m.imageSize())
	if err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "input %s: %v", in.Name, err)
	}
	if layout == channelsLast {
		values = datasets.ChannelsFirst(values, m.data.Channels, m.data.Height, m.data.Width)
	}
	return images, values, nil
}

// layout is the order of an image's dimensions.
type layout int

const (
	channelsPlanar layout = iota // [N C H W]
	channelsLast                 // [N H W C]
)

// layout returns the layout of an input, or an error if its type or shape is not the model's.
func (m *model) layout(in *inferInput) (layout, error) {
	shape := []int(in.Shape)
	d := m.data
	switch in.Datatype {
	case typeUint8, typeFP32:
	case typeBytes:
		if len(shape) < 1 || len(shape) > 2 || shape[0] < 1 || len(shape) == 2 && shape[1] != 1 {
			return 0, errors.Errorf("the shape of BYTES must be [N] or [N 1], got %v", shape)
		}
		return 0, nil
	default:
		return 0, errors.Errorf("the datatype must be UINT8, FP32 or BYTES, got %.40q", in.Datatype)
	}
	if len(shape) > 0 && shape[0] > 0 {
		switch rest := shape[1:]; {
		case slices.Equal(rest, []int{d.Channels, d.Height, d.Width}):
			return channelsPlanar, nil
		case slices.Equal(rest, []int{d.Height, d.Width, d.Channels}):
			return channelsLast, nil
		case d.Channels == 1 && slices.Equal(rest, []int{d.Height, d.Width}):
			return channelsPlanar, nil
		}
	}
	wants := fmt.Sprintf("[N %d %d %d] or [N %[2]d %[3]d %[1]d]", d.Channels, d.Height, d.Width)
	if d.Channels == 1 {
		wants = fmt.Sprintf("[N 1 %d %d], [N %[1]d %[2]d 1] or [N %[1]d %[2]d]", d.Height, d.Width)
	}
	return 0, errors.Errorf("the shape must be %s, got %v; the datatype BYTES takes image files of any size", wants, shape)
}

// readValues returns the values of an input as bytes.
func readValues(in *inferInput, tail []byte, count int) ([]byte, error) {
	pixels := make([]byte, 0, count)
	add := func(value float64) error {
		switch {
		case in.Datatype == typeFP32 && !(value >= 0 && value <= 1):
			return errors.Errorf("value %d: FP32 must be from 0 to 1, got %g; for values from 0 to 255 use UINT8", len(pixels), value)
		case in.Datatype == typeFP32:
			value = math.Round(math.MaxUint8 * value)
		case !(value >= 0 && value <= math.MaxUint8 && value == math.Trunc(value)):
			return errors.Errorf("value %d: UINT8 must be an integer from 0 to 255, got %g; for values from 0 to 1 use FP32", len(pixels), value)
		}
		pixels = append(pixels, byte(value))
		return nil
	}
	if in.Data != nil {
		err := scanData(in.Data, in.Shape, func(token []byte) error {
			value, err := strconv.ParseFloat(string(token), 64)
			if err != nil {
				return errors.Errorf("value %d must be a number, got %.40s", len(pixels), token)
			}
			return add(value)
		})
		return pixels, err
	}
	size := 1
	if in.Datatype == typeFP32 {
		size = 4
	}
	if len(tail) != size*count {
		return nil, errors.Errorf("the shape %v of %s must have %d bytes, got %d", in.Shape, in.Datatype, size*count, len(tail))
	}
	if size == 1 {
		return append(pixels, tail...), nil
	}
	for ; len(tail) > 0; tail = tail[4:] {
		if err := add(float64(math.Float32frombits(binary.LittleEndian.Uint32(tail)))); err != nil {
			return nil, err
		}
	}
	return pixels, nil
}

// imageFiles decodes the image files of an input of BYTES, by the rules of POST /predict, except
// that an image that cannot be decoded is an error of the whole request.
func (b *backend) imageFiles(ctx context.Context, m *model, in *inferInput, tail []byte, h *reservation) (int, []byte, error) {
	uploads := make([]upload, 0, in.Shape[0])
	var err error
	if in.Data != nil {
		err = scanData(in.Data, in.Shape, func(token []byte) error {
			var content base64Text
			if err := content.UnmarshalJSON(token); err != nil {
				return errors.WithMessagef(err, "element %d", len(uploads))
			}
			uploads = append(uploads, upload{content: content})
			return nil
		})
	} else {
		for err == nil && len(tail) > 0 {
			const prefix = 4
			if len(uploads) == in.Shape[0] || len(tail) < prefix || int64(binary.LittleEndian.Uint32(tail)) > int64(len(tail)-prefix) {
				err = errors.Errorf("BYTES of shape %v must be %d times a length in 4 bytes and that number of bytes", in.Shape, in.Shape[0])
				break
			}
			end := prefix + int(binary.LittleEndian.Uint32(tail))
			uploads, tail = append(uploads, upload{content: tail[prefix:end]}), tail[end:]
		}
		if err == nil && len(uploads) != in.Shape[0] {
			err = errors.Errorf("BYTES of shape %v must have %d elements, got %d", in.Shape, in.Shape[0], len(uploads))
		}
	}
	if err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "input %s: %v", in.Name, err)
	}
	pixels, failed, err := b.pool.decodeAll(ctx, m, uploads, h)
	return len(uploads), pixels, cmp.Or(err, cmp.Or(failed...))
}

// scanData calls add for each number or string in the data of a tensor, which must be valid JSON,
// either flat or nested like the shape.
func scanData(data []byte, shape []int, add func(token []byte) error) error {
	total := 1
	for _, n := range shape {
		total *= n
	}
	wrong := func() error {
		return errors.Errorf("data must be %d values in one array, or in arrays nested like the shape %v", total, shape)
	}
	var counts [maxRank + 1]int // by depth
	depth, at, seen := 0, 0, 0  // at is the depth of the values
	for i := 0; i < len(data); {
		switch c := data[i]; c {
		case ' ', '\t', '\r', '\n', ',':
			i++
		case '[':
			counts[depth]++
			if depth++; depth > len(shape) {
				return wrong()
			}
			counts[depth] = 0
			i++
		case ']':
			if at == 1 && depth != 1 || at != 1 && counts[depth] != shape[depth-1] {
				return wrong()
			}
			depth--
			i++
		default:
			end := i + tokenLength(data[i:])
			at = cmp.Or(at, depth)
			if seen++; c == '{' || depth == 0 || depth != at || depth != 1 && depth != len(shape) || seen > total {
				return wrong()
			}
			counts[depth]++
			if err := add(data[i:end]); err != nil {
				return err
			}
			i = end
		}
	}
	if seen != total {
		return wrong()
	}
	return nil
}

// tokenLength returns the length of the number, text or word at the beginning of valid JSON.
func tokenLength(data []byte) int {
	if data[0] != '"' {
		if n := bytes.IndexAny(data, ",] \t\r\n"); n >= 0 {
			return n
		}
		return len(data)
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}
