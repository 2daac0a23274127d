package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"sync/atomic"

	"github.com/pkg/errors"
)

// upload is an encoded image as received.
type upload struct {
	file    string // the client's file name, or ""
	id      string // of the image in its table, or ""
	content []byte
}

// predictRequest is the content of a POST /predict request.
type predictRequest struct {
	images        []upload
	probabilities bool
	instances     bool // the images were called instances: the answers are called predictions
}

// reservation is the memory that a request has reserved from the budget. It is released when the
// request and all its decoders, which may outlive it, have called release.
type reservation struct {
	budget *budget
	bytes  int
	users  atomic.Int32
}

func newReservation(b *budget) *reservation {
	h := &reservation{budget: b}
	h.share()
	return h
}

func (h *reservation) share() { h.users.Add(1) }

func (h *reservation) reserve(bytes int) error {
	if !h.budget.reserve(bytes) {
		return refuse(http.StatusServiceUnavailable, "the server is busy: not enough memory for this request")
	}
	h.bytes += bytes
	return nil
}

func (h *reservation) release() {
	if h.users.Add(-1) == 0 {
		h.budget.release(h.bytes)
	}
}

// firstRoom is the memory for a body before its first byte arrives. A client that announces many
// bytes and sends none reserves no more.
const firstRoom = 16 << 10

// readBody reads a request's body. It reserves memory as bytes arrive, not as they are announced.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, h *reservation) ([]byte, error) {
	limit := s.options.MaxBody
	if r.ContentLength > int64(limit) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body must have at most %d bytes, got %d", limit, r.ContentLength)
	}
	limited, err := plainBody(w, r, http.MaxBytesReader(w, r.Body, int64(limit)), limit)
	if err != nil {
		return nil, bodyError(err, limit)
	}
	room := min(firstRoom, limit+1)
	if r.ContentLength >= 0 {
		room = min(room, int(r.ContentLength)+1)
	}
	if err := h.reserve(room); err != nil {
		return nil, err
	}
	body := make([]byte, 0, room)
	for {
		n, err := limited.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, bodyError(err, limit)
		}
		if len(body) < cap(body) {
			continue
		}
		// One byte more than the limit, so that the reader notices a longer body.
		before := cap(body)
		room = min(2*before, limit+1)
		if err := h.reserve(room); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, room), body...)
		h.budget.release(before)
		h.bytes -= before
	}
}

func bodyError(err error, limit int) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, new(*statusError)):
		return err
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body must have at most %d bytes, got more", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return refuse(http.StatusBadRequest, "the body is incomplete: %v", err)
}

// parse extracts the images from a body by its content type: JSON, a form with files, or else a
// single image.
func (s *Server) parse(r *http.Request, m *model, body []byte, h *reservation) (predictRequest, error) {
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
		q, err = s.parseJSON(body)
	case "multipart/form-data":
		if err := h.reserve(len(body)); err != nil {
			return q, err
		}
		q, err = s.parseForm(body, parameters["boundary"])
	default:
		q.images = []upload{{content: body}}
	}
	if err != nil {
		return q, err
	}
	if q.images, err = s.expand(m, q.images, kind, h); err != nil {
		return q, err
	}
	if len(q.images) == 0 {
		return q, refuse(http.StatusBadRequest, "the request must have 1 to %d images, got none", s.options.MaxImages)
	}
	return q, nil
}

func (s *Server) tooMany() error {
	return refuse(http.StatusRequestEntityTooLarge, "a request must have at most %d images, got more", s.options.MaxImages)
}

// parseJSON reads {"images": ["base64", ...], "probabilities": true}, with at most MaxImages
// images, or {"instances": [{"b64": "base64"}, ...]}.
func (s *Server) parseJSON(body []byte) (predictRequest, error) {
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
				if len(q.images) == s.options.MaxImages {
					return q, s.tooMany()
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
func (s *Server) parseForm(body []byte, boundary string) (predictRequest, error) {
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
		if len(q.images) == s.options.MaxImages {
			return q, s.tooMany()
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
