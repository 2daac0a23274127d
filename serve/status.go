package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// state returns the server's state, "ready", "closing" or "stuck", and the HTTP status that
// reports it.
func (b *backend) state() (state string, code int) {
	switch {
	case !b.models.open():
		return "closing", http.StatusServiceUnavailable
	case b.watchdog.stuck.Load() > 0:
		return "stuck", http.StatusServiceUnavailable
	}
	return "ready", http.StatusOK
}

// run handles GET /run.
func (b *backend) run(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r, "model", "version")
	if err != nil {
		return err
	}
	m, err := b.models.acquire(q.model, q.version)
	if err != nil {
		return err
	}
	defer m.requests.Done()
	writeJSON(w, http.StatusOK, m.info())
	return nil
}

// healthInfo is the JSON of GET /health; without the token it has only the status.
type healthInfo struct {
	Status  string `json:"status"`
	Run     string `json:"run,omitempty"`
	Samples int    `json:"samples,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// health handles GET /health, which needs no token.
func (b *backend) health(w http.ResponseWriter, r *http.Request) error {
	var h healthInfo
	var code int
	if h.Status, code = b.state(); b.secrets.Load().authorized(r) {
		m, err := b.models.acquire("", "") // the model that answers without parameters
		if err != nil {
			return err
		}
		defer m.requests.Done()
		run := m.info()
		h.Run, h.Samples, h.Digest = run.Name, run.Samples, run.Digest
	}
	writeJSON(w, code, h)
	return nil
}

// metrics handles GET /metrics.
func (b *backend) metrics(w http.ResponseWriter, _ *http.Request) error {
	var text bytes.Buffer
	b.counts.write(&text,
		metric{"pollen_queue_images", "gauge", "Images waiting for an answer.", b.shared.waiting.Load()},
		metric{"pollen_stuck", "gauge", "Decoders and predictions that have not ended in time.", b.watchdog.stuck.Load()},
		metric{"pollen_memory_bytes", "gauge", "Bytes reserved for bodies and images.", b.memory.used.Load()},
	)
	writeModels(&text, b.models.list())
	w.Header().Set("Content-Type", metricsType)
	w.Write(text.Bytes())
	return nil
}

// labelEscapes escapes the value of a label for Prometheus's text format.
var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// writeModels writes the metrics of models in Prometheus's text format.
func writeModels(w io.Writer, all []*model) {
	each := func(name, kind, help string, write func(labels string, m *model)) {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		for _, m := range all {
			m.drift.mu.Lock()
			write(fmt.Sprintf("model=\"%s\",version=\"%s\"", labelEscapes.Replace(m.name), labelEscapes.Replace(m.version)), m)
			m.drift.mu.Unlock()
		}
	}
	each("pollen_samples", "gauge", "Posterior samples that are averaged.", func(labels string, m *model) {
		fmt.Fprintf(w, "pollen_samples{%s} %d\n", labels, m.info().Samples)
	})
	help := fmt.Sprintf("Images by predicted class; those after the first %d classes together, as %q.", maxClassLabels, otherClasses)
	each("pollen_predictions_total", "counter", help, func(labels string, m *model) {
		for _, class := range m.drift.order {
			fmt.Fprintf(w, "pollen_predictions_total{%s,class=\"%s\"} %d\n", labels, labelEscapes.Replace(class), m.drift.predicted[class])
		}
	})
	help = "Images with an in-distribution decision, in or out of distribution."
	each("pollen_distribution_total", "counter", help, func(labels string, m *model) {
		fmt.Fprintf(w, "pollen_distribution_total{%s,decision=\"in\"} %d\n", labels, m.drift.inside)
		fmt.Fprintf(w, "pollen_distribution_total{%s,decision=\"out\"} %d\n", labels, m.drift.outside)
	})
}
