package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// window is how many steps run between two looks at a run.
const window = 100

// fitting is a run under way.
type fitting struct {
	config      Config
	folder      string
	console     *console
	data        *datasets.Dataset
	rates       []float64 // by step, on the mean loss
	plan        langevin.Plan
	phase       int // the step at which what is measured begins: the end of burn-in; for optimizers, the last epoch
	session     *graph.Session
	bank        *langevin.Bank
	thermometer *langevin.Thermometer // of the whole sampling phase
	recent      *langevin.Thermometer // of the last window
	metrics     *metricsLog
	progress    *progress
	looked      time.Time      // when the last window ended
	columns     map[string]int // of the metrics
	result      result
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
	err = f.plan.Run(ctx, f.session, window, f.observe)
	f.progress.end()
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

// prepare builds and loads the program, and begins the run's folder.
func (f *fitting) prepare(device tensor.Device, resume bool) error {
	network, err := layers.New(f.config.Model, f.data.Classes)
	if err != nil {
		return err
	}
	if f.plan, f.rates, err = f.config.plan(f.data.Name, f.data.Len()); err != nil {
		return err
	}
	f.result.steps = f.plan.Steps
	f.phase = f.plan.BurnIn
	if !f.config.isSampler() {
		f.phase = f.plan.Steps - f.data.Len()/f.config.Batch
	}
	b := graph.New(tensor.Float32)
	shape := tensor.Shape{f.data.Len(), f.data.Channels, f.data.Height, f.data.Width}
	x, labels := op.Minibatch(b, op.Batch{Size: f.config.Batch, Shuffled: true}, shape, f.data.Mean, f.data.Deviation)
	logits := network.Apply(b, x)
	loss := b.Apply(op.CrossEntropy{}, logits, labels)
	if err := f.attach(b, loss); err != nil {
		return err
	}
	b.Record("loss", loss)
	b.Record("accuracy", b.Apply(op.Accuracy{}, logits, labels))
	f.watch(b)
	program, err := b.Compile()
	if err != nil {
		return err
	}
	for i, name := range program.Metrics() {
		f.columns[name] = i
	}
	f.session, err = program.Load(device, graph.LoadOptions{Seed: f.config.Seed, Chains: f.config.Chains})
	if err != nil {
		return err
	}
	if err := f.begin(program, device, resume); err != nil {
		f.session.Close()
		return err
	}
	return nil
}

// begin gives the session its data, and makes the folder or takes up where it was left.
func (f *fitting) begin(program *graph.Program, device tensor.Device, resume bool) error {
	if err := graph.Write(f.session, "images", 0, 0, f.data.Images); err != nil {
		return err
	}
	if err := graph.Write(f.session, "labels", 0, 0, f.data.Labels); err != nil {
		return err
	}
	f.thermometer = langevin.NewThermometer(program, f.data.Len())
	f.recent = langevin.NewThermometer(program, f.data.Len())
	f.result.weightTrace = make([][]float64, f.config.Chains)
	f.result.lossTrace = make([][]float64, f.config.Chains)
	f.bank = langevin.NewBank(filepath.Join(f.folder, samplesFolder))
	open := f.newFolder
	if resume {
		open = f.oldFolder
	}
	if err := open(program, device); err != nil {
		return err
	}
	var err error
	f.metrics, err = newMetricsLog(f.folder)
	return err
}

// newFolder makes the run's folder whole, or leaves none.
func (f *fitting) newFolder(program *graph.Program, device tensor.Device) error {
	if err := makeFolder(f.folder); err != nil {
		return err
	}
	err := f.fillFolder(program, device)
	if err != nil {
		os.RemoveAll(f.folder)
	}
	return err
}

// fillFolder writes the manifest last: a folder that has one is a run that can be resumed.
func (f *fitting) fillFolder(program *graph.Program, device tensor.Device) error {
	if err := f.bank.Make(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.folder, metricsFile), nil, 0o644); err != nil {
		return errors.Wrap(err, "train: metrics")
	}
	if err := writeCheckpoint(f.folder, f.session); err != nil {
		return err
	}
	m := Manifest{
		Config: f.config, Device: describe(device), DataSize: f.data.Len(), Steps: f.plan.Steps, DataHashes: f.data.Hashes,
		Watched: f.result.watched, Mean: f.data.Mean, Deviation: f.data.Deviation, Classes: f.data.Classes,
	}
	for _, p := range program.Parameters() {
		m.Parameters += p.Shape.Elements()
	}
	m.fillBuild()
	return m.write(f.folder)
}

func (f *fitting) oldFolder(*graph.Program, tensor.Device) error {
	m, err := readManifest(f.folder)
	if err != nil {
		return err
	}
	if !maps.Equal(m.DataHashes, f.data.Hashes) {
		return errors.Errorf("train: resume %s: the data %s are not those of the run", f.folder, f.data.Name)
	}
	if err := readCheckpoint(f.folder, f.session); err != nil {
		return err
	}
	if err := sweep(f.folder); err != nil {
		return err
	}
	if err := f.bank.Cut(int(f.session.Steps())); err != nil {
		return err
	}
	files, err := f.bank.Files()
	if err != nil {
		return err
	}
	f.result.samples = len(files)
	if int(f.session.Steps()) >= f.plan.Steps {
		f.console.remark("all %d steps were made before: nothing is left to do", f.plan.Steps)
	} else {
		f.console.remark("resumed after %d of %d steps; temperatures and R-hat cover the rest", f.session.Steps(), f.plan.Steps)
	}
	return cutMetrics(f.folder, f.session.Steps())
}

// attach adds the update rule.
func (f *fitting) attach(b *graph.Builder, loss *graph.Node) error {
	if !f.config.isSampler() {
		return f.attachOptimizer(b, loss)
	}
	prior, err := parsePrior(*f.config.Prior)
	if err != nil {
		return err
	}
	sampler, err := f.config.sampler(f.plan.BurnIn)
	if err != nil {
		return err
	}
	posterior := langevin.Posterior{DataSize: f.data.Len(), Prior: prior}
	temperatures := make([]float64, f.plan.Steps)
	for i := range temperatures {
		temperatures[i] = *f.config.Temperature
	}
	return langevin.Attach(b, sampler, posterior, loss, posterior.StepSizes(f.rates), temperatures)
}

func (f *fitting) attachOptimizer(b *graph.Builder, loss *graph.Node) error {
	optimizer, err := optimizers.New(f.config.Sampler)
	if err != nil {
		return err
	}
	parameters := b.Parameters()
	gradients := b.Gradients(loss, parameters...)
	var rates *graph.Node
	if optimizers.UsesRates(optimizer) {
		rates = b.Table("rates", f.rates)
	}
	for i, statistic := range optimizers.Update(b, optimizer, parameters, gradients, rates) {
		if statistic != nil {
			b.Record(langevin.VirialPrefix+parameters[i].Name(), statistic)
		}
	}
	return b.Err()
}

// watch records one weight of the first layer.
func (f *fitting) watch(b *graph.Builder) {
	parameters := b.Parameters()
	if len(parameters) == 0 {
		return
	}
	first := parameters[0]
	index := graph.ShapeOf(first).Elements() / 2
	f.result.watched = fmt.Sprintf("%s[%d]", first.Name(), index)
	b.Record("watched", b.Apply(op.Element{Index: index}, first))
}

// observe looks at a window of steps.
func (f *fitting) observe(p langevin.Progress) error {
	if from := max(p.From, f.phase); from < p.To {
		f.thermometer.Observe(f.session, from, p.To)
	}
	f.recent.Reset()
	f.recent.Observe(f.session, p.From, p.To)
	line := metricsLine{
		Step: p.To, Epoch: float64(p.To) * float64(f.config.Batch) / float64(f.data.Len()),
		Rate: f.rates[p.To-1], Temperature: f.recent.Temperature(),
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
	status := fmt.Sprintf("loss %.4f  acc %.4f  T %.3g", line.Loss, line.Accuracy, line.Temperature)
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
	weight := f.rates[step-1] / float64(f.data.Len())
	if !f.config.isSampler() {
		weight = 1
	}
	for chain := range f.config.Chains {
		sample, err := langevin.Take(f.session, chain, chain, weight)
		if err != nil {
			return err
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
		f.result.layers = append(f.result.layers, layerTemperature{layer, f.thermometer.Layer(i)})
	}
}
