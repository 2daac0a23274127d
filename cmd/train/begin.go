package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// prepare builds and loads the program, and begins the run's folder.
func (f *fitting) prepare(device tensor.Device, resume bool) error {
	network, err := f.config.network(f.data.Classes)
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
	logits, loss, err := f.attach(b, network, x, labels)
	if err != nil {
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
	if f.config.samplerName() == swagName {
		f.states = statesBank(f.folder)
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

// banks are where states of the chains are kept.
func (f *fitting) banks() []*langevin.Bank {
	if f.states == nil {
		return []*langevin.Bank{f.bank}
	}
	return []*langevin.Bank{f.bank, f.states}
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
