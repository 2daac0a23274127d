package serve

import (
	"fmt"
	"strings"
	"sync"

	"github.com/pollen-ml/pollen/bayes"
)

// maxClassLabels is the number of classes that have a time series of their own in GET /metrics.
// The classes after them are counted together, since a monitoring system keeps every series.
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
