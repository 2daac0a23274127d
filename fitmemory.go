package pollen

import (
	"fmt"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// EstimateMemory estimates the memory of the run that Fit would make. Nothing is allocated for it
// except the compiled programs. With the method auto it is that of the method that auto would
// choose, without the pilot. The errors are those of Fit for an invalid specification or data.
func EstimateMemory(spec Spec, data *datasets.Splits, options ...Option) (*Memory, error) {
	if data == nil || data.Train == nil {
		return nil, invalid("estimate: no data to train on")
	}
	e := environmentOf(options)
	t, err := newTraining(spec.assumed(data.Train), data.Train, "", e)
	if err != nil {
		return nil, err
	}
	t.splits, t.watching = data, t.heldOut(data)
	var m *Memory
	err = t.on(func(device tensor.Device) error {
		program, err := t.build(device)
		if err != nil {
			return err
		}
		m, err = t.memory(device, program)
		return err
	})
	return m, err
}

// assumed returns the specification with the method that Auto chooses, and a schedule of a pilot.
func (s Spec) assumed(data *datasets.Dataset) Spec {
	if _, ok := s.Method.(Auto); !ok {
		return s
	}
	if s.choosesExact(s.examplesOf(data)) {
		s.Method = exactSampler()
	} else {
		s.Method = autoSampler()
	}
	return s
}

// memory estimates the memory of a training with its compiled program: of all phases if t.splits
// is set, and otherwise of the steps only.
func (t *training) memory(device tensor.Device, program *graph.Program) (*Memory, error) {
	m := &Memory{}
	m.Loaded = t.loaded()
	m.Parts = append(m.Parts, MemoryPart{Name: "data", Host: m.Loaded})
	chains := t.spec.Chains * t.spec.replicasOfEach()
	size, initial, err := program.Size(device, chains)
	if err != nil {
		return nil, err
	}
	const tables = 3 // of rates, temperatures, step sizes
	m.add("network, chains, minibatch", "", size, tables*8*t.plan.Steps)
	m.add("initial values", atStart, tensor.Footprint{}, initial)
	if t.splits == nil {
		return m, m.sum(device)
	}
	weights := parametersOf(program)
	sample := 4 * weights
	_, chain, _ := program.Bytes()
	traces := measure.TracesSize(t.spec.Chains, t.heldOutLen())
	m.add("traces", "", tensor.Footprint{}, traces)
	// The state is copied and then encoded, while the chains continue; so are samples, of which
	// some files are written at once, and the next ones may be there already.
	const copies, writers = 2, 8
	m.add("checkpoints", duringTraining, tensor.Footprint{}, copies*(chains*chain+traces/2))
	m.add("samples being written", duringTraining, tensor.Footprint{}, sample*(copies*t.spec.Chains+min(writers, t.spec.Chains)))
	network, err := t.spec.Build(t.data.Classes)
	if err != nil {
		return nil, err
	}
	if t.watching != nil {
		n := t.heldOutLen()
		held, err := samples.PredictionSize(device, *t.watching, n, n, network.Apply)
		if err != nil {
			return nil, err
		}
		m.add("held-out images", "", held.Footprint, len(t.watching.Pixels)+4*n*held.Classes)
	}
	if err := t.addConclusion(m, device, network, weights); err != nil {
		return nil, err
	}
	if err := t.addDiagnostics(m, device, network); err != nil {
		return nil, err
	}
	if err := t.addPredictions(m, device, network); err != nil {
		return nil, err
	}
	return m, m.sum(device)
}

// loaded returns the bytes of the data, and of the copy that a subset of sorted data is.
func (t *training) loaded() int64 {
	if t.splits == nil {
		return datasetBytes(t.data)
	}
	bytes := datasetBytes(t.splits.Train, t.splits.Validation, t.splits.Test)
	if &t.splits.Train.Images[0] != &t.data.Images[0] {
		bytes += datasetBytes(t.data)
	}
	return bytes
}

// heldOutLen returns the number of held-out images that chains are watched on.
func (t *training) heldOutLen() int {
	if t.watching == nil {
		return 0
	}
	return t.watching.Len()
}

func parametersOf(program *graph.Program) (n int) {
	for _, p := range program.Parameters() {
		n += p.Shape.Elements()
	}
	return n
}

// checkWeights returns a MemoryError if there is no memory for the weights of all chains, of which
// a session keeps a copy. It comes before the graph is compiled, since kernels refuse matrices that
// no machine has memory for.
func (t *training) checkWeights(device tensor.Device, b *graph.Builder) error {
	weights := 0
	for _, p := range b.Parameters() {
		weights += graph.ShapeOf(p).Elements()
	}
	m := &Memory{}
	bytes := 2 * t.spec.Chains * weights * t.dtype().Size()
	if _, onHost := device.(*tensor.Host); onHost {
		m.Host = int64(bytes)
	} else {
		m.Device = int64(bytes)
	}
	if err := m.lookUp(device); err != nil {
		return err
	}
	chains := "a chain"
	if t.spec.Chains > 1 {
		chains = fmt.Sprintf("%d chains", t.spec.Chains)
	}
	return t.checkFits(device, m, "pollen: fit: keeping the weights of "+chains)
}

// checkFits returns a MemoryError if a task of the run needs more than is available.
func (t *training) checkFits(device tensor.Device, m *Memory, task string) error {
	return m.check(task, func(onHost, onDevice int64) []string {
		if t.trial {
			return nil
		}
		return t.advice(device, onHost, onDevice)
	})
}

// checkTables returns a MemoryError if there is no memory for the tables of a run's rates,
// temperatures and step sizes, which are made before its other memory is estimated.
func checkTables(steps int) error {
	const many, tables = 1 << 20, 4
	if steps < many {
		return nil
	}
	return memory.Check(fmt.Sprintf("pollen: fit: making tables of %d steps", steps), 8*tables*int64(steps), func(int64) []string {
		return []string{"fewer epochs", "a larger batch"}
	})
}

// addConclusion adds what approximations take after the last step.
func (t *training) addConclusion(m *Memory, device tensor.Device, network layers.Sequential, weights int) error {
	const file = 8 // bytes per weight of a sample that is read: its file and its values
	switch method := t.kind.(type) {
	case SWAG:
		each := approximate.SWAGBytes(method.Rank, weights)
		m.add("moments of states", afterTraining, tensor.Footprint{}, t.spec.Chains*each+file*weights+each/2)
	case LaplaceApproximation:
		last, ok := network[len(network)-1].(layers.Linear)
		if !ok {
			return nil // which is refused elsewhere
		}
		program, inputs, err := t.lastProgram()
		if err != nil {
			return err
		}
		size, initial, err := program.Size(device, 1)
		if err != nil {
			return err
		}
		each := approximate.LaplaceBytes(inputs, last.Outputs, t.spec.Batch)
		m.add("curvature of the last layer", afterTraining, size, initial+t.spec.Chains*(each+4*weights))
	}
	return nil
}

// addDiagnostics adds what the measurements at the end take.
func (t *training) addDiagnostics(m *Memory, device tensor.Device, network layers.Sequential) error {
	traits := t.kind.traits()
	if !traits.tempered || t.spec.temperature() == 0 {
		return nil
	}
	subject := measure.Subject{
		Network: network, Posterior: t.posterior(), Temperature: t.spec.temperature(), Data: t.data, Batch: t.spec.Batch, Augment: t.spec.Augment.apply,
	}
	if _, ok := t.kind.(minibatchKind); ok && t.spec.Anchor == 0 {
		b, err := measure.NoiseSize(device, subject)
		if err != nil {
			return err
		}
		m.add("noise of gradients", afterTraining, b.Session, b.Heap)
	}
	if traits.collected || traits.drawn || !t.spec.Augment.isNone() {
		return nil
	}
	b, err := measure.PredictionSize(device, subject)
	if err != nil {
		return err
	}
	m.add("temperature of predictions", afterTraining, b.Session, b.Heap)
	return nil
}

// addPredictions adds what predictions for the calibration and the scores take, whichever is more.
func (t *training) addPredictions(m *Memory, device tensor.Device, network layers.Sequential) error {
	n := 0
	for _, d := range []*datasets.Dataset{t.splits.Validation, t.splits.Test} {
		if d != nil {
			n = max(n, d.Len())
		}
	}
	if n == 0 {
		return nil
	}
	d := t.data
	images := samples.Images{Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std}
	return m.addPredictions(afterTraining, device, images, n, network)
}

// advice returns settings with which the run would need at most some bytes of the host, in addition
// to its data, and of the device: fewer chains, a smaller batch, fewer examples, each on its own.
func (t *training) advice(device tensor.Device, onHost, onDevice int64) (advice []string) {
	fits := func(s Spec) bool {
		u, err := newTraining(s, t.data, "", t.environment)
		if err != nil {
			return false
		}
		u.splits, u.watching, u.trial = t.splits, t.watching, true
		program, err := u.build(device)
		if err != nil {
			return false
		}
		m, err := u.memory(device, program)
		return err == nil && m.Host-t.loaded() <= onHost && m.Device <= onDevice
	}
	for _, setting := range []struct {
		name  string
		value int
		set   func(s *Spec, value int)
	}{
		{"chains", t.spec.Chains, func(s *Spec, n int) { s.Chains = n }},
		{"batch", t.spec.Batch, func(s *Spec, n int) { s.Batch = n }},
		{"subset", t.data.Len(), func(s *Spec, n int) { s.Subset = n; s.Batch = min(s.Batch, n) }},
	} {
		if t.kind.traits().exact && setting.name == "batch" {
			continue
		}
		for n := setting.value / 2; n >= 1; n /= 2 {
			s := t.spec
			if setting.set(&s, n); fits(s) {
				advice = append(advice, fmt.Sprintf("%s %d", setting.name, n))
				break
			}
		}
	}
	if len(advice) == 0 {
		advice = []string{"a smaller model"}
	}
	return advice
}
