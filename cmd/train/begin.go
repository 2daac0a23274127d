package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// prepare builds and loads the program, and begins the run's folder.
func (f *fitting) prepare(device tensor.Device, resume bool) error {
	if err := f.load(device); err != nil {
		return err
	}
	if err := f.begin(device, resume); err != nil {
		f.session.Close()
		return err
	}
	return nil
}

// load builds the program, and gives its session the data.
func (f *fitting) load(device tensor.Device) error {
	network, err := f.config.network(f.data.Classes)
	if err != nil {
		return err
	}
	if f.plan, f.rates, err = f.config.plan(f.data.Name, f.data.Len()); err != nil {
		return err
	}
	f.result.steps = f.plan.Steps
	b := graph.New(f.config.dtype())
	shape := tensor.Shape{f.data.Len(), f.data.Channels, f.data.Height, f.data.Width}
	x, labels := op.Minibatch(b, op.Batch{Size: f.config.Batch, Shuffled: !f.config.isExact()}, shape, f.data.Mean, f.data.Deviation)
	logits, loss, err := f.attach(b, network, x, labels)
	if err != nil {
		return err
	}
	b.Record("loss", loss)
	b.Record("accuracy", b.Apply(op.Accuracy{}, logits, labels))
	if watched := f.watched(b); watched != nil {
		b.Record(watchedMetric, watched)
	}
	program, err := b.Compile()
	if err != nil {
		return err
	}
	for i, name := range program.Metrics() {
		f.columns[name] = i
	}
	f.session, err = program.Load(device, graph.LoadOptions{Seed: f.config.Seed, Chains: f.config.Chains * f.config.replicas()})
	if err != nil {
		return err
	}
	if err = graph.Write(f.session, "images", 0, 0, f.data.Images); err == nil {
		err = graph.Write(f.session, "labels", 0, 0, f.data.Labels)
	}
	if err != nil {
		f.session.Close()
	}
	return err
}

// begin makes the folder or takes up where it was left.
func (f *fitting) begin(device tensor.Device, resume bool) error {
	program := f.session.Program()
	scale := f.data.Len()
	if f.config.isExact() {
		scale = 1 // its metrics are of U, not of U/N
	}
	f.thermometer, f.recent = diagnostics.NewThermometer(program, scale), diagnostics.NewThermometer(program, scale)
	f.result.weightTrace = make([][]float64, f.config.Chains)
	f.result.lossTrace = make([][]float64, f.config.Chains)
	f.bank = samples.NewBank(filepath.Join(f.folder, samplesFolder))
	if f.config.samplerName() == swagName {
		f.statesBank = statesBank(f.folder)
	}
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
	for _, bank := range f.banks() {
		if err := bank.Make(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(f.folder, metricsFile), nil, 0o644); err != nil {
		return errors.Wrap(err, "train: metrics")
	}
	checkpoint, err := checkpointOf(f.session)
	if err == nil {
		err = writeCheckpoint(f.folder, checkpoint)
	}
	if err != nil {
		return err
	}
	m := Manifest{
		Config: f.config, Device: describe(device), DataSize: f.data.Len(), Steps: f.plan.Steps, DataHashes: f.data.Hashes,
		Watched: f.result.watched, Mean: f.data.Mean[0], Deviation: f.data.Deviation[0], Classes: f.data.Classes,
	}
	for _, p := range program.Parameters() {
		m.Parameters += p.Shape.Elements()
	}
	made := thisBuild()
	m.Revision, m.Modified, m.Versions = made.Revision, made.Modified, made.Versions
	return m.write(f.folder)
}

// banks are where states of the chains are kept.
func (f *fitting) banks() []*samples.Bank {
	if f.statesBank == nil {
		return []*samples.Bank{f.bank}
	}
	return []*samples.Bank{f.bank, f.statesBank}
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
	for _, bank := range f.banks() {
		if err := bank.Cut(int(f.session.Steps())); err != nil {
			return err
		}
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

// attach adds the network, its loss, which is the mean negative log-likelihood of a minibatch, and the update rule.
func (f *fitting) attach(b *graph.Builder, network layers.Sequential, x, labels *graph.Node) (logits, loss *graph.Node, err error) {
	if f.config.rule() == nil {
		logits = network.Apply(b, x)
		loss = b.Apply(op.CrossEntropy{}, logits, labels)
		return logits, loss, f.attachOptimizer(b, loss)
	}
	prior, err := parsePrior(*f.config.Prior)
	if err != nil {
		return nil, nil, err
	}
	posterior := langevin.Posterior{DataSize: f.data.Len(), Prior: prior}
	if f.config.samplerName() == backpropName {
		return f.attachBackprop(b, posterior, network, x, labels)
	}
	if f.config.isExact() {
		f.temperatures = slices.Repeat([]float64{f.config.temperature()}, f.plan.Steps)
		logits = network.Apply(b, x)
		loss = b.Apply(op.CrossEntropy{}, logits, labels)
		return logits, loss, f.attachMetropolis(b, posterior, loss)
	}
	sampler, err := f.config.sampler(f.plan.BurnIn)
	if err != nil {
		return nil, nil, err
	}
	if f.temperatures, err = f.plan.Temperatures(sampler, f.config.temperature()); err != nil {
		return nil, nil, err
	}
	logits = network.Apply(b, x)
	loss = b.Apply(op.CrossEntropy{}, logits, labels)
	h := posterior.StepSizes(f.rates)
	if f.config.Temperatures != nil {
		return logits, loss, f.attachReplicas(b, sampler, posterior, loss)
	}
	if f.config.Anchor == nil {
		return logits, loss, langevin.Attach(b, sampler, posterior, loss, h, f.temperatures)
	}
	batch := f.config.Batch
	variates := langevin.ControlVariates{BatchSize: batch, Refresh: *f.config.Anchor * f.data.Len() / batch}
	anchor, err := variates.Attach(b, sampler, posterior, loss, h, f.temperatures)
	f.interventions = append(f.interventions, anchor)
	return logits, loss, err
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
	optimizers.Update(b, optimizer, parameters, gradients, rates)
	return b.Err()
}

// watchedMetric is the weight whose trace is kept.
const watchedMetric = "watched"

// watched is one weight of the first layer; nil if there is none.
func (f *fitting) watched(b *graph.Builder) *graph.Node {
	parameters := b.Parameters()
	if len(parameters) == 0 {
		return nil
	}
	first := parameters[0]
	index := graph.ShapeOf(first).Elements() / 2
	f.result.watched = fmt.Sprintf("%s[%d]", first.Name(), index)
	return b.Apply(op.Element{Index: index}, first)
}
