package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/pkg/errors"
)

// predictRequest is the content of a POST /predict request.
type predictRequest struct {
	images        []upload
	probabilities bool
	instances     bool // the images were called instances: the answers are called predictions
}

// parse extracts the images from a body by its content type: JSON, a form with files, or else a
// single image.
func (b *backend) parse(r *http.Request, m *model, body []byte, h *reservation) (predictRequest, error) {
	if len(body) == 0 {
		return predictRequest{}, refuse(http.StatusBadRequest, "the body must be an image, a form with files, or JSON, got an empty one")
	}
	kind, parameters, malformed := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if malformed != nil {
		kind = "" // the image's first bytes determine its format
	}
	var q predictRequest
	var err error
	switch kind {
	case "application/json":
		if err := h.reserve(5 * len(body)); err != nil { // the decoder's copies, and the images
			return q, err
		}
		q, err = b.parseJSON(body)
	case "multipart/form-data":
		if err := h.reserve(len(body)); err != nil {
			return q, err
		}
		q, err = b.parseForm(body, parameters["boundary"])
	default:
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			return q, refuse(http.StatusUnsupportedMediaType, "a body in JSON must have the header Content-Type: application/json, got %q", kind)
		}
		q.images = []upload{{content: body}}
	}
	if err != nil {
		return q, err
	}
	if q.images, err = b.expand(m, q.images, kind, h); err != nil {
		return q, err
	}
	if len(q.images) == 0 {
		return q, refuse(http.StatusBadRequest, "the request must have 1 to %d images, got none", b.options.MaxImages)
	}
	return q, nil
}

// parseJSON reads {"images": ["base64", ...], "probabilities": true}, with at most MaxImages
// images, or {"instances": [{"b64": "base64"}, ...]}.
func (b *backend) parseJSON(body []byte) (predictRequest, error) {
	var q predictRequest
	wrong := func(err error) (predictRequest, error) {
		return q, refuse(http.StatusBadRequest, `JSON: %v; must be {"images": ["base64", ...], "probabilities": true}`, err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := expect(d, json.Delim('{')); err != nil {
		return wrong(err)
	}
	for d.More() {
		name, err := d.Token()
		switch {
		case err != nil:
			return wrong(err)
		case name == "probabilities":
			if err := d.Decode(&q.probabilities); err != nil {
				return wrong(err)
			}
		case (name == "images" || name == "instances") && q.images == nil:
			q.instances = name == "instances"
			if err := expect(d, json.Delim('[')); err != nil {
				return wrong(err)
			}
			q.images = []upload{}
			for d.More() {
				if len(q.images) == b.options.MaxImages {
					return q, b.tooMany()
				}
				var content encodedImage
				if err := d.Decode(&content); err != nil {
					return wrong(errors.Wrapf(err, "image %d", len(q.images)))
				}
				q.images = append(q.images, upload{content: content})
			}
			if err := expect(d, json.Delim(']')); err != nil {
				return wrong(err)
			}
		default:
			return wrong(errors.Errorf("unknown member %.40q", name))
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return wrong(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong(errors.New("data after the object"))
	}
	return q, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got == nil {
		err = errors.Errorf("expected %v, got null", want)
	} else if err == nil && got != want {
		err = errors.Errorf("expected %v, got %.40v", want, got)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// maxFileName is the largest size in bytes of a file name, which the answer repeats: 255 characters
// in any script.
const maxFileName = 1024

// parseForm reads each part of a form as an image.
func (b *backend) parseForm(body []byte, boundary string) (predictRequest, error) {
	var q predictRequest
	if boundary == "" {
		return q, refuse(http.StatusBadRequest, "form: the content type must have a boundary")
	}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return q, nil
		}
		if err != nil {
			return q, refuse(http.StatusBadRequest, "form: part %d: %v", len(q.images), err)
		}
		if len(q.images) == b.options.MaxImages {
			return q, b.tooMany()
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return q, refuse(http.StatusBadRequest, "form: part %d: %v", len(q.images), err)
		}
		name := part.FileName()
		if len(name) > maxFileName {
			return q, refuse(http.StatusBadRequest, "form: part %d: the file name must have at most %d bytes, got %d", len(q.images), maxFileName, len(name))
		}
		q.images = append(q.images, upload{file: name, content: content})
	}
}
