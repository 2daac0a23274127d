package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// window is how many steps run between two looks at a run.
const window = 100

// fitting is a run under way.
type fitting struct {
	config        Config
	folder        string
	console       *console
	data          *datasets.Dataset
	rates         []float64 // by step, on the mean loss
	plan          langevin.Plan
	temperatures  []float64 // by step; nil for optimizers
	phase         int       // the step at which what is measured begins: the end of burn-in; for optimizers, the last epoch
	interventions []langevin.Intervention
	session       *graph.Session
	bank          *langevin.Bank
	states        *langevin.Bank        // SWAG's
	meanField     *langevin.MeanField   // of Bayes by Backprop
	thermometer   *langevin.Thermometer // of the whole sampling phase
	recent        *langevin.Thermometer // of the last window
	metrics       *metricsLog
	progress      *progress
	looked        time.Time      // when the last window ended
	columns       map[string]int // of the metrics
	result        result
}

// result is what a run leaves in memory; its samples are in its folder.
type result struct {
	folder      string
	config      Config
	begun       bool        // there is a folder that the run can go on from
	made, steps int         // steps made by now, and to be made
	trace       []float64   // of the watched weight, chain 0, one value per step
	weightTrace [][]float64 // the same, of each chain, in the sampling phase
	lossTrace   [][]float64 // of each chain's minibatch loss, in the sampling phase
	temperature float64     // configurational, of the sampling phase; of the last epoch for optimizers
	kinetic     float64     // likewise; NaN without momentum
	layers      []layerTemperature
	samples     int     // of all chains
	seconds     float64 // of this process
	watched     string
}

type layerTemperature struct {
	name        string
	temperature float64
	kinetic     float64
}

// fit trains as config says, into a new folder, or goes on with the run of a folder that has a checkpoint. When the context ends it
// stops between two windows; the samples drawn by then are in the folder, and result tells how many.
func fit(ctx context.Context, config Config, name, folder string, resume bool, data *datasets.Dataset, device tensor.Device, c *console) (result, error) {
	config, err := config.resolve()
	if err != nil {
		return result{}, err
	}
	f := &fitting{config: config, folder: folder, console: c, data: data, columns: map[string]int{}}
	f.result = result{folder: folder, config: config}
	if err := f.prepare(device, resume); err != nil {
		return f.result, err
	}
	defer f.session.Close()
	f.result.begun = true
	f.progress = c.progress(name, int(f.session.Steps()), f.plan.Steps)
	start := c.now()
	f.looked = start
	err = f.plan.Run(ctx, f.session, window, f.observe, f.interventions...)
	f.progress.end()
	if err == nil {
		err = f.conclude()
	}
	if stopped(err) {
		if saving := f.save(); saving != nil {
			err = saving
		}
	}
	f.result.seconds = c.now().Sub(start).Seconds()
	f.result.made = int(f.session.Steps())
	f.finish()
	if closing := f.metrics.close(); err == nil {
		err = closing
	}
	return f.result, err
}

// save makes the folder one that the run can go on from, from where the chains are now.
func (f *fitting) save() error {
	if err := f.metrics.flush(); err != nil {
		return err
	}
	return writeCheckpoint(f.folder, f.session)
}

// observe looks at a window of steps.
func (f *fitting) observe(p langevin.Progress) error {
	for step := max(p.From, f.phase); step < p.To; step++ {
		if f.temperatures == nil || f.temperatures[step] == f.config.temperature() {
			f.thermometer.Observe(f.session, step, step+1)
		}
	}
	f.recent.Reset()
	f.recent.Observe(f.session, p.From, p.To)
	line := metricsLine{
		Step: p.To, Epoch: float64(p.To) * float64(f.config.Batch) / float64(f.data.Len()),
		Rate: f.rates[p.To-1],
	}
	temperature := f.recent.Temperature()
	if !math.IsNaN(temperature) {
		line.Temperature = &temperature
	}
	if f.config.isSampler() {
		line.Requested = *f.config.Temperature
	}
	line.Loss, line.Accuracy = f.traces(p)
	if err := f.metrics.add(line); err != nil {
		return err
	}
	if p.Sample {
		if err := f.takeSamples(p.To); err != nil {
			return err
		}
	}
	if epoch := max(1, f.data.Len()/f.config.Batch); p.Sample || p.From/epoch != p.To/epoch {
		if err := f.save(); err != nil {
			return err
		}
	}
	now := f.console.now()
	images := float64((p.To - p.From) * f.config.Batch * f.config.Chains)
	status := fmt.Sprintf("loss %.4f  acc %.4f  T %s", line.Loss, line.Accuracy, orDash("%.3g", temperature))
	if rHat := f.result.rHat(thinned(f.result.lossTrace)); !math.IsNaN(rHat) {
		status += fmt.Sprintf("  R-hat %.2f", rHat)
	}
	f.progress.update(p.To, fmt.Sprintf("%s  %.0f images/s", status, images/now.Sub(f.looked).Seconds()))
	f.looked = now
	return nil
}

// liveValues bounds the values of each chain that the live R-hat is computed from: it must not slow a long run down.
const liveValues = 500

// thinned is every so manieth value of each trace.
func thinned(traces [][]float64) [][]float64 {
	short := make([][]float64, len(traces))
	for i, trace := range traces {
		for at := 0; at < len(trace); at += 1 + len(trace)/liveValues {
			short[i] = append(short[i], trace[at])
		}
	}
	return short
}

// traces keeps what later figures and diagnostics need, and returns the window's mean loss and accuracy.
func (f *fitting) traces(p langevin.Progress) (loss, accuracy float64) {
	for step := p.From; step < p.To; step++ {
		for chain := range f.config.Chains {
			value := f.session.Metric(chain, f.columns["loss"], uint64(step))
			weight := f.session.Metric(chain, f.columns["watched"], uint64(step))
			loss += value
			accuracy += f.session.Metric(chain, f.columns["accuracy"], uint64(step))
			if chain == 0 {
				f.result.trace = append(f.result.trace, weight)
			}
			if step >= f.phase {
				f.result.lossTrace[chain] = append(f.result.lossTrace[chain], value)
				f.result.weightTrace[chain] = append(f.result.weightTrace[chain], weight)
			}
		}
	}
	n := float64((p.To - p.From) * f.config.Chains)
	return loss / n, accuracy / n
}

func (f *fitting) takeSamples(step int) error {
	if f.config.samplerName() == backpropName {
		return nil
	}
	weight := f.rates[step-1] / float64(f.data.Len())
	if !f.config.isSampler() {
		weight = 1
	}
	for chain := range f.config.Chains {
		sample, err := langevin.Take(f.session, chain, chain, weight)
		if err != nil {
			return err
		}
		if f.states != nil {
			if err := f.states.Add(sample); err != nil {
				return err
			}
			continue
		}
		if err := f.bank.Add(sample); err != nil {
			return err
		}
		f.result.samples++
	}
	return nil
}

// finish computes what the whole run says: NaN for temperatures when it never came to the phase that is measured.
func (f *fitting) finish() {
	f.result.temperature, f.result.kinetic = f.thermometer.Temperature(), f.thermometer.KineticTemperature()
	for i, layer := range f.thermometer.Layers {
		f.result.layers = append(f.result.layers, layerTemperature{layer, f.thermometer.Layer(i), f.thermometer.KineticLayer(i)})
	}
}
