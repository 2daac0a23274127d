package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
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
	session     *graph.Session
	bank        *langevin.Bank
	thermometer *langevin.Thermometer // of the whole sampling phase
	recent      *langevin.Thermometer // of the last window
	metrics     *metricsLog
	progress    *progress
	columns     map[string]int // of the metrics
	result      result
}

// result is what a run leaves in memory; its samples are in its folder.
type result struct {
	folder      string
	config      Config
	trace       []float64   // of the watched weight, chain 0, one value per step
	weightTrace [][]float64 // the same, of each chain, in the sampling phase
	lossTrace   [][]float64 // of each chain's minibatch loss, in the sampling phase
	temperature float64     // configurational, of the sampling phase; of the last epoch for optimizers
	layers      []layerTemperature
	samples     int // of all chains
	seconds     float64
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
	f.progress = c.progress(name, int(f.session.Steps()), f.plan.Steps)
	start := time.Now()
	err = f.plan.Run(ctx, f.session, window, f.observe)
	f.progress.end()
	f.result.seconds = time.Since(start).Seconds()
	f.finish()
	if closing := f.metrics.close(); err == nil {
		err = closing
	}
	return f.result, err
}

// prepare builds and loads the program, and begins the run's folder.
func (f *fitting) prepare(device tensor.Device, resume bool) error {
	network, err := layers.New(f.config.Model, f.data.Classes)
	if err != nil {
		return err
	}
	if f.config.Batch > f.data.Len() {
		return errors.Errorf("train: batch of %d from the %d examples of %s, wants at most as many", f.config.Batch, f.data.Len(), f.data.Name)
	}
	if err := f.schedule(); err != nil {
		return err
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

func (f *fitting) newFolder(program *graph.Program, device tensor.Device) error {
	if err := makeFolder(f.folder); err != nil {
		return err
	}
	m := Manifest{
		Config: f.config, Device: device.Name(), DataSize: f.data.Len(), Steps: f.plan.Steps, DataHashes: f.data.Hashes,
		Watched: f.result.watched, Mean: f.data.Mean, Deviation: f.data.Deviation, Classes: f.data.Classes,
	}
	for _, p := range program.Parameters() {
		m.Parameters += p.Shape.Elements()
	}
	m.fillBuild()
	if err := m.write(f.folder); err != nil {
		return err
	}
	return f.bank.Make()
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
	if err := f.bank.Cut(int(f.session.Steps())); err != nil {
		return err
	}
	files, err := f.bank.Files()
	f.result.samples = len(files)
	f.console.remark("resumed after %d of %d steps; diagnostics cover the rest", f.session.Steps(), f.plan.Steps)
	if err != nil {
		return err
	}
	return cutMetrics(f.folder, f.session.Steps())
}

// schedule turns epochs into steps.
func (f *fitting) schedule() error {
	perEpoch := float64(f.data.Len()) / float64(f.config.Batch)
	f.plan.Steps = max(1, int(perEpoch*float64(f.config.Epochs)))
	if f.config.isSampler() {
		f.plan.BurnIn = int(perEpoch * float64(*f.config.BurnIn))
		f.plan.Thinning = (f.plan.Steps - f.plan.BurnIn) / *f.config.Samples
		if f.plan.Thinning < 1 {
			return errors.Errorf("train: %d samples in the %d steps after burn-in, wants at most one per step", *f.config.Samples, f.plan.Steps-f.plan.BurnIn)
		}
	} else {
		f.plan.BurnIn, f.plan.Thinning = f.plan.Steps-1, 1
	}
	schedule, err := optimizers.ParseSchedule(f.config.Schedule)
	if err != nil {
		return err
	}
	f.rates, err = schedule.Rates(f.plan.Steps)
	return err
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
	var sampler langevin.Sampler = langevin.SGLD{}
	if f.config.Sampler == "psgld" {
		p := langevin.PSGLD{Alpha: *f.config.Alpha, Lambda: *f.config.Lambda, Gamma: langevin.Gamma(*f.config.Gamma)}
		if p.Gamma == langevin.GammaFrozen {
			p.FreezeAt = max(1, f.plan.BurnIn)
		}
		sampler = p
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
	sampling := p.From >= f.plan.BurnIn
	if !f.config.isSampler() {
		sampling = p.From >= f.plan.Steps-f.data.Len()/f.config.Batch
	}
	if sampling {
		f.thermometer.Observe(f.session, p.From, p.To)
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
	line.Loss, line.Accuracy = f.traces(p, sampling)
	if err := f.metrics.add(line); err != nil {
		return err
	}
	if p.Sample {
		if err := f.takeSamples(p.To); err != nil {
			return err
		}
	}
	if epoch := max(1, f.data.Len()/f.config.Batch); p.Sample || p.From/epoch != p.To/epoch {
		if err := f.metrics.flush(); err != nil {
			return err
		}
		if err := writeCheckpoint(f.folder, f.session); err != nil {
			return err
		}
	}
	f.progress.update(p.To, fmt.Sprintf("loss %.4f  acc %.4f  T %.3g", line.Loss, line.Accuracy, line.Temperature))
	return nil
}

// traces keeps what later figures and diagnostics need, and returns the window's mean loss and accuracy.
func (f *fitting) traces(p langevin.Progress, sampling bool) (loss, accuracy float64) {
	for step := p.From; step < p.To; step++ {
		for chain := range f.config.Chains {
			value := f.session.Metric(chain, f.columns["loss"], uint64(step))
			weight := f.session.Metric(chain, f.columns["watched"], uint64(step))
			loss += value
			accuracy += f.session.Metric(chain, f.columns["accuracy"], uint64(step))
			if chain == 0 {
				f.result.trace = append(f.result.trace, weight)
			}
			if sampling {
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

// finish computes what the whole run says.
func (f *fitting) finish() {
	if f.thermometer.Steps() == 0 {
		return
	}
	f.result.temperature = f.thermometer.Temperature()
	for i, layer := range f.thermometer.Layers {
		f.result.layers = append(f.result.layers, layerTemperature{layer, f.thermometer.Layer(i)})
	}
}

// stopped tells whether a run ended because the user said so.
func stopped(err error) bool { return errors.Is(err, context.Canceled) }

// newRunFolder is a folder's name that does not exist yet: runs/<name>-1, -2, ...
func newRunFolder(name string) (string, error) {
	for i := 1; ; i++ {
		folder := filepath.Join("runs", fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), i))
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			return folder, nil
		} else if err != nil {
			return "", errors.Wrap(err, "train: run folder")
		}
	}
}
