package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// window is how many steps run between two looks at a run; exactWindow with a Metropolis test, from which there is a value of the traces for each.
const (
	window      = 100
	exactWindow = 10
)

// fitting is a run under way.
type fitting struct {
	config        Config
	folder        string
	console       *console
	data          *datasets.Dataset
	rates         []float64 // by step, on the mean loss
	plan          langevin.Plan
	temperatures  []float64 // by step; nil without a rule of langevin's
	interventions []langevin.Intervention
	walk          metropolis.Walk    // with a Metropolis test
	replicas      *langevin.Replicas // with temperatures that are swapped
	session       *graph.Session
	bank          *samples.Bank
	statesBank    *samples.Bank            // SWAG's
	meanField     *approximate.MeanField   // of Bayes by Backprop
	thermometer   *diagnostics.Thermometer // of the whole sampling phase
	recent        *diagnostics.Thermometer // of the last window
	saving        background
	metrics       *metricsLog
	progress      *progress
	looked        time.Time      // when the last window ended
	loss          float64        // of the last window, the mean of its steps and chains
	columns       map[string]int // of the metrics
	result        result
}

// result is what a run leaves in memory; its samples are in its folder.
type result struct {
	folder      string
	config      Config
	begun       bool             // there is a folder that the run can go on from
	made, steps int              // steps made by now, and to be made
	trace       []float64        // of the watched weight, chain 0, one value per step
	weightTrace [][]float64      // the same, of each chain, in the sampling phase
	lossTrace   [][]float64      // of each chain's minibatch loss, in the sampling phase
	all         layerTemperature // of all parameters, in the sampling phase; NaN for optimizers, and kinetic without momentum
	layers      []layerTemperature
	proposals   float64 // with a Metropolis test: in the sampling phase
	accepted    float64 // the sum of the probabilities with which these were to be accepted
	swaps       float64 // the share of the attempts to swap temperatures that succeeded; NaN without
	samples     int     // of all chains
	seconds     float64 // of this process
	watched     string
}

// layerTemperature has the standard error of the configurational temperature.
type layerTemperature struct {
	name          string
	temperature   float64
	standardError float64
	kinetic       float64
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
	err = f.plan.Run(ctx, f.session, f.window(), f.observe, f.interventions...)
	f.progress.end()
	if saving := f.saving.wait(); saving != nil && (err == nil || stopped(err)) {
		err = saving
	}
	if err == nil {
		err = f.conclude()
	}
	if stopped(err) {
		if saving := f.saveNow(); saving != nil {
			err = saving
		}
	}
	f.result.seconds = c.now().Sub(start).Seconds()
	f.result.made = int(f.session.Steps())
	f.finish()
	f.warn(name)
	if closing := f.metrics.close(); err == nil {
		err = closing
	}
	return f.result, err
}

// warn says that a run has learnt nothing, if so: large steps can end a network of ReLUs for good, and its loss is finite all the same.
func (f *fitting) warn(name string) {
	const like = 0.98
	if guessing := math.Log(float64(f.data.Classes)); f.loss > like*guessing {
		f.console.remark("%s: the loss of the last steps, %.3f, is not below that of guessing among %d classes, %.3f; lower learning rates may help",
			name, f.loss, f.data.Classes, guessing)
	}
}

// window is how many steps run between two looks at the run: few where all data are evaluated.
func (f *fitting) window() int {
	if f.walk != nil {
		return exactWindow
	}
	return window
}

// save writes samples, and then where the chains are, from where the run can go on, while the next steps run.
func (f *fitting) save(drawn []samples.Sample) error {
	if err := f.saving.wait(); err != nil {
		return err
	}
	if err := f.metrics.flush(); err != nil {
		return err
	}
	checkpoint, err := checkpointOf(f.session)
	if err != nil {
		return err
	}
	bank := f.bank
	if f.statesBank != nil {
		bank = f.statesBank
	} else {
		f.result.samples += len(drawn)
	}
	f.saving.begin(func() error {
		if err := bank.Add(drawn...); err != nil {
			return err
		}
		return writeCheckpoint(f.folder, checkpoint)
	})
	return nil
}

// saveNow is save, and it waits for the disk.
func (f *fitting) saveNow() error {
	if err := f.save(nil); err != nil {
		return err
	}
	return f.saving.wait()
}

// observe looks at a window of steps.
func (f *fitting) observe(p langevin.Progress) error {
	line := metricsLine{
		Step: p.To, Epoch: float64(p.To) * float64(f.config.Batch) / float64(f.data.Len()),
		Rate: f.rates[p.To-1],
	}
	chains, err := f.replicas.Cold(f.session)
	if err != nil {
		return err
	}
	if line.Loss, line.Accuracy, err = f.traces(p, chains); err != nil {
		return err
	}
	f.loss = line.Loss
	status := fmt.Sprintf("loss %.4f  acc %.4f", line.Loss, line.Accuracy)
	if f.config.isSampler() {
		temperature := f.measure(p, chains)
		line.Requested = *f.config.Temperature
		if !math.IsNaN(temperature) {
			line.Temperature = &temperature
			status += fmt.Sprintf("  T %.3g", temperature)
		}
	}
	if err := f.metrics.add(line); err != nil {
		return err
	}
	var drawn []samples.Sample
	if p.Sample && f.config.samplerName() != backpropName {
		if drawn, err = f.states(p.To); err != nil {
			return err
		}
	}
	if epoch := max(1, f.data.Len()/f.config.Batch); p.Sample || p.From/epoch != p.To/epoch {
		if err := f.save(drawn); err != nil {
			return err
		}
	}
	now := f.console.now()
	images := float64((p.To - p.From) * f.config.Batch * f.session.Chains())
	if rHat := f.result.rHat(thinned(f.result.lossTrace)); !math.IsNaN(rHat) {
		status += fmt.Sprintf("  R-hat %.2f", rHat)
	}
	f.progress.update(p.To, fmt.Sprintf("%s  %.0f images/s", status, images/now.Sub(f.looked).Seconds()))
	f.looked = now
	return nil
}

// measure observes the temperatures of a window of steps, and returns the mean one.
func (f *fitting) measure(p langevin.Progress, chains []int) float64 {
	for step := max(p.From, f.plan.BurnIn); step < p.To; step++ {
		if f.temperatures[step] != f.config.temperature() {
			continue
		}
		f.thermometer.ObserveChains(f.session, step, step+1, chains)
		for _, chain := range chains {
			if f.walk != nil {
				f.result.proposals++
				f.result.accepted += f.session.Metric(chain, f.columns[metropolis.TraceAcceptance], uint64(step))
			}
		}
	}
	f.recent.Reset()
	f.recent.ObserveChains(f.session, p.From, p.To, chains)
	return f.recent.Temperature()
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

// traces keeps what later figures and diagnostics need of chains, with a Metropolis test one value for each window. It returns the window's mean loss and
// accuracy.
func (f *fitting) traces(p langevin.Progress, chains []int) (loss, accuracy float64, err error) {
	for step := p.From; step < p.To; step++ {
		for i, chain := range chains {
			value := f.session.Metric(chain, f.columns["loss"], uint64(step))
			weight := f.session.Metric(chain, f.columns[watchedMetric], uint64(step))
			loss += value
			accuracy += f.session.Metric(chain, f.columns["accuracy"], uint64(step))
			if f.walk != nil {
				if step < p.To-1 {
					continue
				}
				if value, weight, err = f.drawn(chain, uint64(step)); err != nil {
					return 0, 0, err
				}
			}
			if i == 0 {
				f.result.trace = append(f.result.trace, weight)
			}
			if step >= f.plan.BurnIn {
				f.result.lossTrace[i] = append(f.result.lossTrace[i], value)
				f.result.weightTrace[i] = append(f.result.weightTrace[i], weight)
			}
		}
	}
	n := float64((p.To - p.From) * len(chains))
	return loss / n, accuracy / n, nil
}

// states are those of the chains now, in the order of their numbers.
func (f *fitting) states(step int) (drawn []samples.Sample, err error) {
	weight := 1.0
	if f.config.isSampler() {
		weight = f.rates[step-1] / float64(f.data.Len())
	}
	if f.replicas != nil {
		return f.replicas.Take(f.session, weight)
	}
	for chain := range f.config.Chains {
		var sample samples.Sample
		if f.walk != nil {
			sample, err = f.walk.Take(f.session, chain)
		} else {
			sample, err = samples.Take(f.session, chain, weight)
		}
		if err != nil {
			return nil, err
		}
		drawn = append(drawn, sample)
	}
	return drawn, nil
}

// finish computes what the whole run says: NaN for temperatures when it never came to the phase that is measured.
func (f *fitting) finish() {
	f.result.swaps = math.NaN()
	if f.replicas != nil {
		if v, err := f.replicas.Acceptance(f.session); err == nil {
			f.result.swaps = v
		}
	}
	t := f.thermometer
	f.result.all = layerTemperature{"all", t.Temperature(), t.TemperatureError(), t.KineticTemperature()}
	for i, layer := range t.Layers {
		f.result.layers = append(f.result.layers, layerTemperature{layer, t.Layer(i), t.LayerError(i), t.KineticLayer(i)})
	}
}
