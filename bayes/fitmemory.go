package bayes

import (
	"fmt"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/strange"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

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
	if err := t.addWarmStart(m, device); err != nil {
		return nil, err
	}
	weights := parametersOf(program)
	sample := 4 * weights
	_, chain, _ := program.Bytes()
	traces := measure.TracesSize(t.spec.Chains, t.heldOutLen())
	m.add("traces", "", tensor.Footprint{}, traces)
	m.add("checkpoints", duringTraining, tensor.Footprint{}, copiesWritten*(chains*chain+traces/2))
	m.add("samples being written", duringTraining, tensor.Footprint{}, t.writtenBytes(sample))
	images := t.data.Len() + t.heldOutLen() + t.validationLen()
	if c := t.copier(); c != nil {
		images += t.rows()
		if err := m.addCopies(device, c); err != nil {
			return nil, err
		}
	}
	if err := m.addFeatures(atStart, device, t.parts, images); err != nil {
		return nil, err
	}
	if t.watching != nil {
		n := t.heldOutLen()
		held, err := samples.PredictionSize(device, t.parts.inputs(), n, n, t.parts.network.Apply)
		if err != nil {
			return nil, err
		}
		m.add("held-out images", "", held.Footprint, len(t.watching.Pixels)+4*n*held.Classes)
	}
	if err := t.addValidation(m, device); err != nil {
		return nil, err
	}
	if t.teaching != nil {
		const perTarget = 2 * 4 // bytes, of the file and its values
		n := t.data.Len()
		m.add("changed images and targets", duringTraining, tensor.Footprint{}, n*(t.data.ImageSize()+perTarget*t.spec.Chains*(t.data.Classes+1)))
	}
	if err := t.addConclusion(m, device, weights); err != nil {
		return nil, err
	}
	if err := t.addDiagnostics(m, device); err != nil {
		return nil, err
	}
	if err := t.addDetector(m, device); err != nil {
		return nil, err
	}
	if err := t.addPredictions(m, device); err != nil {
		return nil, err
	}
	return m, m.sum(device)
}

// loaded returns the bytes of the data, including the copy that Spec.Subset makes of data that are
// sorted by class.
func (t *training) loaded() int64 {
	if t.splits == nil {
		return datasetBytes(t.data)
	}
	// First returns a copy of the images unless those that it chooses are contiguous.
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

// validationLen returns the number of validation images that chains are scored on.
func (t *training) validationLen() int { return len(t.labels) }

// addWarmStart adds the memory of the warm start: its images, its chains, and the best weights of
// each.
func (t *training) addWarmStart(m *Memory, device tensor.Device) error {
	if t.warmUp == nil {
		return nil
	}
	u := t.warmUp.training
	program, err := u.build(device)
	if err != nil {
		return err
	}
	size, initial, err := program.Size(device, t.spec.Chains)
	if err != nil {
		return err
	}
	_, chain, _ := program.Bytes()
	const copies = 2 // of a checkpoint's states, which are copied and then encoded
	states := copies * t.spec.Chains * (chain + 4*parametersOf(program))
	m.add("warm start", atStart, size, initial+states+4*t.spec.Chains*parametersOf(program))
	m.Parts[len(m.Parts)-1].Host += datasetBytes(u.data, t.warmUp.heldOut)
	return nil
}

// copiesWritten is the number of copies of a state while it is written: it is copied and then
// encoded, while the chains continue.
const copiesWritten = 2

// writtenBytes returns the memory of samples of the given size in bytes while they are written:
// several files are written at once, and the next samples may already exist.
func (t *training) writtenBytes(sample int) int {
	const writers = 8
	return sample * (copiesWritten*t.spec.Chains + min(writers, t.spec.Chains))
}

// addValidation adds the memory of the scores.
func (t *training) addValidation(m *Memory, device tensor.Device) error {
	n := t.validationLen()
	if n == 0 {
		return nil
	}
	scored, err := samples.PredictionSize(device, t.parts.inputs(), n, standardBatch, t.parts.network.Apply)
	if err != nil {
		return err
	}
	m.add("validation images", "", scored.Footprint, len(t.validation.Pixels)+measure.ValidationBytes*n*scored.Classes)
	return nil
}

// addConclusion adds the memory of approximations after the last step.
func (t *training) addConclusion(m *Memory, device tensor.Device, weights int) error {
	const file = 8 // bytes per weight of a sample that is read: its file and its values
	switch method := t.kind.(type) {
	case SWAG:
		each := approximate.SWAGBytes(method.Rank, weights)
		// Half as much again for the states that were read and are not yet collected as garbage.
		m.add("moments of states", afterTraining, tensor.Footprint{}, t.spec.Chains*each*3/2+file*weights)
	case LaplaceApproximation:
		last, ok := t.parts.network[len(t.parts.network)-1].(layers.Linear)
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
		m.add("curvature of the last layer", afterTraining, size, initial+t.spec.Chains*(each+4*weights)+t.writtenBytes(4*weights))
	}
	return nil
}

// addDiagnostics adds the memory of the measurements at the end.
func (t *training) addDiagnostics(m *Memory, device tensor.Device) error {
	traits := t.kind.traits()
	if !traits.tempered || t.spec.NoiseTemperature() == 0 {
		return nil
	}
	subject := t.subject()
	if _, ok := t.kind.(minibatchKind); ok && t.spec.Anchor == 0 {
		b, err := measure.NoiseSize(device, subject)
		if err != nil {
			return err
		}
		m.add("noise of gradients", afterTraining, b.Session, b.Heap)
	}
	if traits.collected || traits.drawn || t.spec.Augment.atEachStep() || t.classWeights != nil ||
		measure.PredictionSamples(t.files(), t.passes(t.plan.Steps)) == 0 {
		return nil
	}
	b, err := measure.PredictionSize(device, subject)
	if err != nil {
		return err
	}
	m.add("temperature of predictions", afterTraining, b.Session, b.Heap)
	return nil
}

// addCopies adds the memory of making changed copies of images.
func (m *Memory) addCopies(device tensor.Device, c *copier) error {
	program, err := c.program()
	if err != nil {
		return err
	}
	size, initial, err := program.Size(device, 1)
	if err != nil {
		return err
	}
	m.add("changed copies", atStart, size, initial+c.images()*c.Copies*c.data.ImageSize())
	return nil
}

// addDetector adds the memory of fitting the detector to training images, and of showing it strange
// images once it is calibrated.
func (t *training) addDetector(m *Memory, device tensor.Device) error {
	// add adds the memory of the features of n images, of which the heap has the given number of
	// copies in addition to the session's.
	add := func(name string, n, copies int) error {
		if err := m.addFeatures(afterTraining, device, t.parts, n); err != nil {
			return err
		}
		size, err := samples.FeaturePredictionSize(device, t.parts.inputs(), n, predictBatch, t.parts.network.Apply)
		if err != nil {
			return err
		}
		m.add(name, afterTraining, size.Footprint, copies*n*t.data.ImageSize())
		return nil
	}
	bank, reference := detector.Split(t.data.Len())
	if err := add("detector", bank+reference, 1); err != nil {
		return err
	}
	if held := t.splits.Validation; held == nil || held.Len() < evaluate.NeededExamples(evaluate.Level) {
		return nil
	}
	return add("strange images", strange.Count(), 2) // by kind, and all
}

// addPredictions adds the memory of the predictions for the calibration or for the scores,
// whichever is more.
func (t *training) addPredictions(m *Memory, device tensor.Device) error {
	n := 0
	for _, d := range []*datasets.Dataset{t.splits.Validation, t.splits.Test} {
		if d != nil {
			n = max(n, d.Len())
		}
	}
	if n == 0 {
		return nil
	}
	return m.addPredictions(afterTraining, device, t.parts, n, t.files(), true)
}

// files returns the number of samples that the finished run has.
func (t *training) files() int {
	if c := t.kind.traits(); c.collected || c.drawn {
		return t.spec.Samples * t.spec.Chains
	}
	return rundir.Retention{Plan: t.plan, Keep: t.spec.Keep}.Samples() * t.spec.Chains
}

// build compiles the program. It returns a MemoryError if the device does not even have memory for
// the weights.
func (t *training) build(device tensor.Device) (*graph.Program, error) {
	b, err := t.graph()
	if err != nil {
		return nil, err
	}
	if err := t.checkWeights(device, b); err != nil {
		return nil, err
	}
	return b.Compile()
}

// checkWeights returns a MemoryError if there is no memory for a session's copy of the weights of
// all chains. It comes before the graph is compiled, since kernels refuse matrices that no machine
// has memory for.
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

// fitting builds the program of a training. It returns a MemoryError if there is no memory for its
// steps.
func (t *training) fitting(device tensor.Device) (*graph.Program, error) {
	program, err := t.build(device)
	if err != nil {
		return nil, err
	}
	m, err := t.memory(device, program)
	if err != nil {
		return nil, err
	}
	return program, t.checkFits(device, m, "pollen: fit")
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

// advice returns settings with which the run would need at most onHost bytes of the host, in
// addition to its data, and onDevice bytes of the device: fewer chains, a smaller batch, fewer
// examples, each on its own.
func (t *training) advice(device tensor.Device, onHost, onDevice int64) (advice []string) {
	fits := func(s Spec) bool {
		u, err := newTraining(s, t.data, "", t.environment)
		if err != nil {
			return false
		}
		u.splits, u.watching, u.trial = t.splits, t.watching, true
		u.validation, u.labels = t.validation, t.labels
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
		n := halved(setting.value, func(n int) bool {
			s := t.spec
			setting.set(&s, n)
			return fits(s)
		})
		if n > 0 {
			advice = append(advice, fmt.Sprintf("%s %d", setting.name, n))
		}
	}
	if len(advice) == 0 {
		advice = []string{"a smaller model"}
	}
	return advice
}
