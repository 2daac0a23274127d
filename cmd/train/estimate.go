package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pollen-ml/pollen/langevin"
)

// runEstimate says what a run would cost, by some of its steps.
func runEstimate(ctx context.Context, config Config, c *console) error {
	const window, windows = 2, 4
	device, err := openDevice(config.Device, config.Threads, config.Precision, c)
	if err != nil {
		return err
	}
	defer device.Close()
	data, err := trainingData(ctx, config, c)
	if err != nil {
		return err
	}
	f := &fitting{config: config, data: data, columns: map[string]int{}}
	if err := f.load(device); err != nil {
		return err
	}
	defer f.session.Close()
	// The first window warms up: its time is not counted, nor that of an anchor before it.
	var first, last time.Time
	timed := langevin.Plan{Steps: window * windows, Thinning: window * windows}
	err = timed.Run(ctx, f.session, window, func(p langevin.Progress) error {
		if last = c.now(); p.From == 0 {
			first = last
		}
		return nil
	}, f.interventions...)
	if err != nil {
		return err
	}
	step := last.Sub(first) / (window * (windows - 1))
	cost := (step * time.Duration(f.plan.Steps)).Round(time.Second)
	fmt.Fprintf(c.out, "%d steps of %.1f ms: about %s, and the predictions\n", f.plan.Steps, milliseconds(step), cost)
	return nil
}
