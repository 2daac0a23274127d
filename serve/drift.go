package serve

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/pollen-ml/pollen/bayes"
)

// maxClassLabels is how many classes have a time series of their own in GET /metrics; those after
// them are counted together. A monitoring system keeps every series.
const maxClassLabels = 100

// maxLabel is the largest size in bytes of a label.
const maxLabel = 100

// otherClasses is the label of the classes after maxClassLabels.
const otherClasses = "other"

// drift counts predicted classes and in-distribution decisions: a change of their rates over time
// means that the images have changed.
type drift struct {
	labels []string // by class
	order  []string // of the labels, each once

	mu              sync.Mutex
	predicted       map[string]int64 // by label
	inside, outside int64
}

func newDrift(classNames []string) *drift {
	d := &drift{predicted: map[string]int64{}}
	for class, name := range classNames {
		if len(name) > maxLabel {
			name = fmt.Sprintf("%s... (%d)", strings.ToValidUTF8(name[:maxLabel], ""), class)
		}
		if class >= maxClassLabels {
			name = otherClasses
		}
		if _, known := d.predicted[name]; !known {
			d.order = append(d.order, name)
		}
		d.labels, d.predicted[name] = append(d.labels, name), 0
	}
	return d
}

func (d *drift) add(answers []bayes.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range answers {
		d.predicted[d.labels[a.Index]]++
		switch {
		case a.InDistribution == nil:
		case *a.InDistribution:
			d.inside++
		default:
			d.outside++
		}
	}
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
