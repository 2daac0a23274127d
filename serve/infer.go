package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
)

// infer handles POST /v2/models/{name}/infer, also of a version.
func (b *backend) infer(w http.ResponseWriter, r *http.Request) error {
	if _, err := readQuery(r); err != nil {
		return err
	}
	m, err := b.models.acquire(r.PathValue("name"), r.PathValue("version"))
	if err != nil {
		return err
	}
	defer m.requests.Done()
	h := newReservation(&b.memory)
	defer h.release()
	body, err := b.receive(w, r, h)
	if err != nil {
		return err
	}
	expectation := m.queue.expect()
	defer expectation.end()
	q, tail, err := parseInfer(r.Header.Get(inferHeader), body, h)
	if err != nil {
		return err
	}
	wanted, err := q.wanted(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), b.options.Timeout)
	defer cancel()
	images, pixels, err := b.tensor(ctx, m, q, tail, h)
	if err != nil {
		return err
	}
	given := expectation.submit(ctx, images, pixels)
	if given.err != nil {
		return given.err
	}
	m.drift.add(given.answers)
	w.Header().Set(digestHeader, given.digest)
	return m.writeInfer(w, q, wanted, given)
}

// wantedOutput is an output to return, in JSON or as bytes.
type wantedOutput struct {
	output
	binary bool
}

// wanted returns the outputs that a request selects, or all outputs of the model.
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

// absent reports whether the answers lack the data of an output, which happens if the run has
// been replaced by one that is not calibrated.
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
