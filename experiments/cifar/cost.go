package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/tensor"
)

// announce prints what the methods will cost: on this machine, from the time of some steps, and on
// a GPU, from the cost model of package cuda.
func (s *study) announce(ctx context.Context) error {
	var here, there time.Duration
	precision := cmp.Or(cuda.Precision(s.on.Precision), cuda.TF32)
	for _, m := range s.methods {
		spec, device := m.spec(s), &predicting{Device: s.device, precision: precision}
		steps, step, err := comparison.Cost(ctx, spec, s.data.Train, 8, time.Now, nil, bayes.WithDevice(device))
		if err != nil {
			return err
		}
		all, predicted := step*time.Duration(steps), device.step*time.Duration(steps)
		fmt.Fprintf(s.progress, "%-15s %d images, %d steps of %.1f ms: about %s here, %s on one %s by prediction\n", m.title,
			max(1, spec.Chains)*batch*steps, steps, step.Seconds()*1000, all.Round(time.Second), predicted.Round(time.Second), cuda.H200.Name)
		here, there = here+all, there+predicted
	}
	if len(s.methods) > 1 {
		fmt.Fprintf(s.progress, "%-15s about %s here, %s there, and the predictions\n", "in all", here.Round(time.Second), there.Round(time.Second))
	}
	return nil
}

// predicting is a device that also predicts how long the longest of the loaded steps takes on a
// GPU.
type predicting struct {
	tensor.Device
	precision cuda.Precision
	step      time.Duration
}

// Load implements tensor.Device.
func (p *predicting) Load(w tensor.Workload) (tensor.Runner, error) {
	_, seconds, err := cuda.Predict(w, cuda.H200, p.precision)
	if err != nil {
		return nil, err
	}
	p.step = max(p.step, time.Duration(seconds*float64(time.Second)))
	return p.Device.Load(w)
}
