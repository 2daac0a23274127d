package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// Limits of lists in requests, whose elements take more memory than their text.
const (
	maxInputs  = 8
	maxOutputs = 64
	maxRank    = 8
)

// inferRequest is the JSON of POST /v2/models/{name}/infer.
type inferRequest struct {
	ID         string               `json:"id,omitempty" doc:"The response repeats it."`
	Parameters *inferParameters     `json:"parameters,omitempty"`
	Inputs     few[inferInput]      `json:"inputs" doc:"The input image, and no other."`
	Outputs    few[requestedOutput] `json:"outputs,omitempty" doc:"The outputs to return, in this order. Without any, all are returned."`
}

// inferParameters are the parameters of a request.
type inferParameters struct {
	BinaryDataOutput bool `json:"binary_data_output,omitempty" doc:"Return outputs as bytes after the JSON, unless binary_data of an output is false."`
}

// inferInput is an input tensor.
type inferInput struct {
	Name       string           `json:"name" doc:"image"`
	Datatype   string           `json:"datatype" doc:"UINT8: values from 0 to 255. FP32: values from 0 to 1. BYTES: image files, in JSON as base64."`
	Shape      few[int]         `json:"shape" doc:"[N C H W], [N H W C] or, of one channel, [N H W]; [N] or [N 1] for BYTES."`
	Parameters *inputParameters `json:"parameters,omitempty"`
	Data       json.RawMessage  `json:"data,omitempty" doc:"The values in row-major order, flat or nested. Absent if they follow the JSON as bytes."`
}

// inputParameters are the parameters of an input.
type inputParameters struct {
	BinaryDataSize *int `json:"binary_data_size,omitempty" doc:"The values are this number of bytes after the JSON."`
}

// requestedOutput is an output that a request selects.
type requestedOutput struct {
	Name       string            `json:"name"`
	Parameters *outputParameters `json:"parameters,omitempty"`
}

// outputParameters are the parameters of a requested output.
type outputParameters struct {
	BinaryData *bool `json:"binary_data,omitempty" doc:"Return the values as bytes after the JSON."`
}

// inferResponse is the JSON of the answer to POST /v2/models/{name}/infer.
type inferResponse struct {
	ModelName    string             `json:"model_name"`
	ModelVersion string             `json:"model_version"`
	ID           string             `json:"id,omitempty"`
	Parameters   responseParameters `json:"parameters"`
	Outputs      []outputTensor     `json:"outputs"`
}

// responseParameters are the parameters of a response.
type responseParameters struct {
	RunDigest string `json:"run_digest" doc:"The digest of the run that predicted."`
}

// outputTensor is an output of a response.
type outputTensor struct {
	Name       string            `json:"name"`
	Datatype   string            `json:"datatype"`
	Shape      []int             `json:"shape"`
	Parameters *tensorParameters `json:"parameters,omitempty"`
	Data       tensorValues      `json:"data,omitempty" doc:"The values in row-major order. Absent if they follow the JSON as bytes."`
}

// tensorValues are []float32, []int32, []bool or []string.
type tensorValues any

// tensorParameters are the parameters of an output that follows the JSON as bytes.
type tensorParameters struct {
	BinaryDataSize int `json:"binary_data_size"`
}

// few is a list in JSON of a few elements: more are an error before they take memory.
type few[T any] []T

// limit returns the largest number of elements.
func (few[T]) limit() int {
	switch any(*new(T)).(type) {
	case inferInput:
		return maxInputs
	case requestedOutput:
		return maxOutputs
	}
	return maxRank
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *few[T]) UnmarshalJSON(content []byte) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := expect(d, json.Delim('[')); err != nil {
		return err
	}
	*f = few[T]{}
	for d.More() {
		if len(*f) == f.limit() {
			return errors.Errorf("a list must have at most %d elements, got more", f.limit())
		}
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*f = append(*f, element)
	}
	return nil
}

// infer handles POST /v2/models/{name}/infer and that of a version.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	m, err := s.models.acquire(r.PathValue("name"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.requests.Done()
	h := newReservation(&s.memory)
	defer h.release()
	body, err := s.receive(w, r, h)
	if err != nil {
		return err
	}
	q, tail, err := parseInfer(r.Header.Get(inferHeader), body, h)
	if err != nil {
		return err
	}
	wanted, err := q.wanted(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	images, pixels, err := s.tensor(ctx, m, q, tail, h)
	if err != nil {
		return err
	}
	given := m.queue.submit(ctx, images, pixels)
	if given.err != nil {
		return given.err
	}
	m.drift.add(given.answers)
	w.Header().Set(digestHeader, given.digest)
	return m.writeInfer(w, q, wanted, given)
}

// inferHeader is the header of a request or response whose JSON is followed by the bytes of
// tensors: the length of the JSON.
const inferHeader = "Inference-Header-Content-Length"

// parseInfer parses the JSON of a request. tail has the bytes that follow it.
func parseInfer(length string, body []byte, h *reservation) (q *inferRequest, tail []byte, err error) {
	wrong := func(format string, values ...any) (*inferRequest, []byte, error) {
		return nil, nil, refuse(http.StatusBadRequest, format, values...)
	}
	head := body
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 1 || n > len(body) {
			return wrong("the header %s must be the length of the JSON, 1 to %d, got %.40q", inferHeader, len(body), length)
		}
		head, tail = body[:n], body[n:]
	}
	if err := h.reserve(5 * len(head)); err != nil { // the decoder's copies
		return nil, nil, err
	}
	q = &inferRequest{}
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return wrong(`JSON: %v; must be {"inputs": [{"name": "image", "datatype": ..., "shape": [...], "data": [...]}], "outputs": [{"name": ...}]}`, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong("JSON: data after the object")
	}
	return q, tail, nil
}

// wantedOutput is an output to be returned, in JSON or as bytes.
type wantedOutput struct {
	output
	binary bool
}

// wanted returns the outputs that a request selects, or all of the model's.
func (q *inferRequest) wanted(m *model) ([]wantedOutput, error) {
	run := m.info()
	asBytes := q.Parameters != nil && q.Parameters.BinaryDataOutput
	var all []wantedOutput
	if len(q.Outputs) == 0 {
		for _, o := range outputs {
			if o.lacks(&run) == "" {
				all = append(all, wantedOutput{o, asBytes})
			}
		}
		return all, nil
	}
	for _, selected := range q.Outputs {
		o := find(selected.Name)
		if o == nil {
			return nil, refuse(http.StatusBadRequest, "there is no output %.100q; GET /v2/models/%s lists the outputs", selected.Name, m.name)
		}
		if reason := o.lacks(&run); reason != "" {
			return nil, refuse(http.StatusBadRequest, "there is no output %s: %s", o.name, reason)
		}
		for _, before := range all {
			if before.name == o.name {
				return nil, refuse(http.StatusBadRequest, "the output %s must be selected once, got it twice", o.name)
			}
		}
		each := wantedOutput{*o, asBytes}
		if p := selected.Parameters; p != nil && p.BinaryData != nil {
			each.binary = *p.BinaryData
		}
		all = append(all, each)
	}
	return all, nil
}

func find(name string) *output {
	for i := range outputs {
		if outputs[i].name == name {
			return &outputs[i]
		}
	}
	return nil
}

// writeInfer writes the outputs, in JSON or as bytes after it.
func (m *model) writeInfer(w http.ResponseWriter, q *inferRequest, wanted []wantedOutput, given result) error {
	response := inferResponse{ModelName: m.name, ModelVersion: m.version, ID: q.ID, Parameters: responseParameters{given.digest}}
	var tail []byte
	asBytes := false
	for _, o := range wanted {
		if o.absent(given.answers) {
			if len(q.Outputs) == 0 {
				continue
			}
			return refuse(http.StatusBadRequest, "there is no output %s: the run was replaced meanwhile, by one that is not calibrated for it", o.name)
		}
		t := outputTensor{Name: o.name, Datatype: o.datatype, Shape: []int{len(given.answers)}}
		if o.byClass {
			t.Shape = append(t.Shape, m.data.Classes())
		}
		values := o.values(given.answers, m.data.ClassNames)
		if o.binary {
			asBytes = true
			before := len(tail)
			tail = appendTensor(tail, values)
			t.Parameters = &tensorParameters{len(tail) - before}
		} else {
			t.Data = values
		}
		response.Outputs = append(response.Outputs, t)
	}
	if !asBytes {
		writeJSON(w, http.StatusOK, response)
		return nil
	}
	head, err := json.Marshal(response)
	if err != nil {
		return errors.Wrap(err, "serve: infer")
	}
	w.Header().Set(inferHeader, strconv.Itoa(len(head)))
	writeContent(w, http.StatusOK, binaryType, append(head, tail...))
	return nil
}

// absent reports whether answers lack what an output is made of, which happens if the run is
// replaced by one that is not calibrated.
func (o *output) absent(answers []bayes.Answer) bool {
	for i := range answers {
		switch o.name {
		case "prediction_set":
			return answers[i].PredictionSet == nil
		case "in_distribution", "p_value":
			return answers[i].InDistribution == nil
		case "refer":
			return answers[i].Refer == nil
		}
	}
	return false
}
