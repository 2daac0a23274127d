package serve

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"

	"github.com/pkg/errors"
)

// encoded is a picture as received.
type upload struct {
	file    string // the client's name for it, if it has one
	content []byte
}

// question is what a request asks.
type predictRequest struct {
	images        []upload
	probabilities bool
}

// hold is what a request has taken of the budget.
type reservation struct {
	budget *budget
	bytes  int
}

func (h *reservation) reserve(bytes int) error {
	if !h.budget.reserve(bytes) {
		return refuse(http.StatusServiceUnavailable, "the server is busy: no room for this request's bytes at present")
	}
	h.bytes += bytes
	return nil
}

func (h *reservation) release() { h.budget.release(h.bytes) }

// firstRoom is what a body gets before its first byte arrives: a client that promises many bytes
// and sends none takes no more.
const firstRoom = 16 << 10

// readBody reads a request's body. It takes memory as bytes arrive, not as they are promised.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, h *reservation) ([]byte, error) {
	most := s.options.MaxBody
	if r.ContentLength > int64(most) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "a body of %d bytes, wants at most %d", r.ContentLength, most)
	}
	limited := http.MaxBytesReader(w, r.Body, int64(most))
	room := min(firstRoom, most+1)
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
			return nil, bodyError(err, most)
		}
		if len(body) < cap(body) {
			continue
		}
		// A byte more than the limit, so that the reader notices if there is one.
		before := cap(body)
		room = min(2*before, most+1)
		if err := h.reserve(room); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, room), body...)
		h.budget.release(before)
		h.bytes -= before
	}
}

func bodyError(err error, most int) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "a body of more than %d bytes, wants at most as many", most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the body did not arrive in time")
	}
	return refuse(http.StatusBadRequest, "the body ends early: %v", err)
}

// parse finds the pictures in a body, by its content type: JSON, a form with files, or else one
// picture.
func (s *Server) parse(r *http.Request, body []byte, h *reservation) (predictRequest, error) {
	if len(body) == 0 {
		return predictRequest{}, refuse(http.StatusBadRequest, "the body is empty, wants an image, a form with files, or JSON")
	}
	kind, parameters, malformed := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if malformed != nil {
		kind = "" // the picture's first bytes say what it is
	}
	var q predictRequest
	var err error
	switch kind {
	case "application/json":
		if err := h.reserve(3 * len(body)); err != nil { // the decoder's copies, and the pictures
			return q, err
		}
		q, err = s.parseJSON(body)
	case "multipart/form-data":
		if err := h.reserve(len(body)); err != nil {
			return q, err
		}
		q, err = s.parseForm(body, parameters["boundary"])
	default:
		q.images = []upload{{"", body}}
	}
	if err != nil {
		return q, err
	}
	if len(q.images) == 0 {
		return q, refuse(http.StatusBadRequest, "no images, wants 1 to %d", s.options.MaxImages)
	}
	switch wanted := r.URL.Query().Get("probabilities"); wanted {
	case "":
	case "true", "1":
		q.probabilities = true
	case "false", "0":
	default:
		return q, refuse(http.StatusBadRequest, "probabilities is %q, wants true or false", wanted)
	}
	return q, nil
}

func (s *Server) tooMany() error {
	return refuse(http.StatusRequestEntityTooLarge, "more than %d images, wants at most as many in a request", s.options.MaxImages)
}

// parseJSON reads {"images": ["base64", ...], "probabilities": true}, with no more images than
// allowed.
func (s *Server) parseJSON(body []byte) (predictRequest, error) {
	var q predictRequest
	wrong := func(err error) (predictRequest, error) {
		return q, refuse(http.StatusBadRequest, `JSON: %v, wants {"images": ["base64", ...], "probabilities": true}`, err)
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
		case name == "images" && q.images == nil:
			if err := expect(d, json.Delim('[')); err != nil {
				return wrong(err)
			}
			q.images = []upload{}
			for d.More() {
				if len(q.images) == s.options.MaxImages {
					return q, s.tooMany()
				}
				var content []byte
				if err := d.Decode(&content); err != nil {
					return wrong(errors.Wrapf(err, "image %d", len(q.images)))
				}
				q.images = append(q.images, upload{"", content})
			}
			if err := expect(d, json.Delim(']')); err != nil {
				return wrong(err)
			}
		default:
			return wrong(errors.Errorf("got %.40q", name))
		}
	}
	if err := expect(d, json.Delim('}')); err != nil {
		return wrong(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong(errors.New("something follows the object"))
	}
	return q, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err == nil && got != want {
		err = errors.Errorf("got %.40v where %v belongs", got, want)
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// parseForm takes each part of a form as a picture.
func (s *Server) parseForm(body []byte, boundary string) (predictRequest, error) {
	var q predictRequest
	if boundary == "" {
		return q, refuse(http.StatusBadRequest, "form: the content type has no boundary")
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
		q.images = append(q.images, upload{part.FileName(), content})
	}
}
