package bayes

import (
	"cmp"
	"fmt"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/strange"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// memory estimates the memory of a training with its compiled program: of all phases if t.splits
// is set, and otherwise of the steps only.
func (t *training) memory(device tensor.Device, program *graph.Program) (*Memory, error) {
	e := &estimate{device: device}
	e.Loaded = t.dataBytes()
	e.Parts = append(e.Parts, MemoryPart{Name: "data", Host: e.Loaded})
	chains := t.spec.Chains * t.spec.replicasOfEach()
	size, initial := e.program(program, chains)
	const tables = 3 // of rates, temperatures, step sizes
	e.add("network, chains, minibatch", "", size, tables*8*t.plan.Steps)
	e.add("initial values", atStart, tensor.Footprint{}, initial)
	if t.splits == nil {
		return e.done()
	}
	t.addWarmStart(e)
	weights := parametersOf(program)
	sample := 4 * weights
	_, chain, _ := program.Bytes()
	traces := measure.TracesSize(t.spec.Chains, t.heldOutLen())
	e.add("traces", "", tensor.Footprint{}, traces)
	e.add("checkpoints", duringTraining, tensor.Footprint{}, copiesWritten*(chains*chain+traces/2))
	e.add("samples being written", duringTraining, tensor.Footprint{}, t.writtenBytes(sample))
	images := t.data.Len() + t.heldOutLen() + len(t.labels)
	if c := t.copier(); c != nil {
		images += t.rows()
		e.built(c.program, func(p *graph.Program) {
			size, initial := e.program(p, 1)
			e.add("changed copies", atStart, size, initial+c.images()*c.Copies*c.data.ImageSize())
		})
	}
	e.addFeatures(atStart, t.parts, images)
	if n := t.heldOutLen(); n > 0 {
		held := e.prediction(samples.PredictionSize, t.parts, n, n)
		e.add("held-out images", "", held.Footprint, len(t.watching.Pixels)+4*n*held.Classes)
	}
	if n := len(t.labels); n > 0 {
		scored := e.prediction(samples.PredictionSize, t.parts, n, standardBatch)
		e.add("validation images", "", scored.Footprint, len(t.validation.Pixels)+measure.ValidationBytes*n*scored.Classes)
	}
	if t.teaching != nil {
		const perTarget = 2 * 4 // bytes, of the file and its values
		n := t.data.Len()
		e.add("changed images and targets", duringTraining, tensor.Footprint{}, n*(t.data.ImageSize()+perTarget*t.spec.Chains*(t.data.Classes+1)))
	}
	t.addConclusion(e, weights)
	t.addDiagnostics(e)
	t.addDetector(e)
	t.addPredictions(e)
	return e.done()
}

// dataBytes returns the bytes of the data, including the copy that Spec.Subset makes of data that
// are sorted by class.
func (t *training) dataBytes() int64 {
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

// addWarmStart adds the memory of the warm start: its images, its chains, and the best weights of
// each.
func (t *training) addWarmStart(e *estimate) {
	if t.warmUp == nil {
		return
	}
	u := t.warmUp.training
	e.built(func() (*graph.Program, error) { return u.build(e.device) }, func(program *graph.Program) {
		size, initial := e.program(program, t.spec.Chains)
		_, chain, _ := program.Bytes()
		states := copiesWritten * t.spec.Chains * (chain + 4*parametersOf(program))
		e.add("warm start", atStart, size, initial+states+4*t.spec.Chains*parametersOf(program))
		e.Parts[len(e.Parts)-1].Host += datasetBytes(u.data, t.warmUp.heldOut)
	})
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

// addConclusion adds the memory of approximations after the last step.
func (t *training) addConclusion(e *estimate, weights int) {
	const file = 8 // bytes per weight of a sample that is read: its file and its values
	switch method := t.kind.(type) {
	case SWAG:
		each := approximate.SWAGBytes(method.Rank, weights)
		// Half as much again for the states that were read and are not yet collected as garbage.
		e.add("moments of states", afterTraining, tensor.Footprint{}, t.spec.Chains*each*3/2+file*weights)
	case LaplaceApproximation:
		last, ok := t.parts.network[len(t.parts.network)-1].(layers.Linear)
		if !ok {
			return // which is refused elsewhere
		}
		inputs := 0
		e.built(func() (p *graph.Program, err error) { p, inputs, err = t.lastProgram(); return p, err }, func(p *graph.Program) {
			size, initial := e.program(p, 1)
			each := approximate.LaplaceBytes(inputs, last.Outputs, t.spec.Batch)
			e.add("curvature of the last layer", afterTraining, size, initial+t.spec.Chains*(each+4*weights)+t.writtenBytes(4*weights))
		})
	}
}

// addDiagnostics adds the memory of the measurements at the end.
func (t *training) addDiagnostics(e *estimate) {
	traits := t.kind.traits()
	if !traits.tempered || t.spec.NoiseTemperature() == 0 {
		return
	}
	add := func(name string, of func(tensor.Device, measure.Subject) (measure.Bytes, error)) {
		b, err := of(e.device, t.subject())
		e.err = cmp.Or(e.err, err)
		e.add(name, afterTraining, b.Session, b.Heap)
	}
	if _, ok := t.kind.(minibatchKind); ok && t.spec.Anchor == 0 {
		add("noise of gradients", measure.NoiseSize)
	}
	if t.measuresPredictions() && measure.PredictionSamples(t.spec.expected(t.kind, t.plan), t.passes(t.plan.Steps)) > 0 {
		add("temperature of predictions", measure.PredictionSize)
	}
}

// addDetector adds the memory of fitting the detector to training images, and of showing it strange
// images once it is calibrated.
func (t *training) addDetector(e *estimate) {
	// add adds the memory of the features of n images, of which the heap has the given number of
	// copies in addition to the session's.
	add := func(name string, n, copies int) {
		e.addFeatures(afterTraining, t.parts, n)
		size := e.prediction(samples.FeaturePredictionSize, t.parts, n, predictBatch)
		e.add(name, afterTraining, size.Footprint, copies*n*t.data.ImageSize())
	}
	bank, reference := detector.Split(t.data.Len())
	add("detector", bank+reference, 1)
	if held := t.splits.Validation; held != nil && held.Len() >= evaluate.NeededExamples(evaluate.Level) {
		add("strange images", strange.Count(), 2) // by kind, and all
	}
}

// addPredictions adds the memory of the predictions for the calibration or for the scores,
// whichever is more.
func (t *training) addPredictions(e *estimate) {
	n := 0
	for _, d := range []*datasets.Dataset{t.splits.Validation, t.splits.Test} {
		if d != nil {
			n = max(n, d.Len())
		}
	}
	if n > 0 {
		e.addPredictions(afterTraining, t.parts, n, t.spec.expected(t.kind, t.plan), true)
	}
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
	e, bytes := &estimate{device: device}, int64(2*t.spec.Chains*weights*t.dtype().Size())
	if _, onHost := device.(*tensor.Host); onHost {
		e.Parts = []MemoryPart{{Host: bytes}}
	} else {
		e.Parts = []MemoryPart{{Device: bytes}}
	}
	m, err := e.done()
	if err != nil {
		return err
	}
	chains := "a chain"
	if t.spec.Chains > 1 {
		chains = fmt.Sprintf("%d chains", t.spec.Chains)
	}
	return t.checkFits(device, m, "pollen: fit: keeping the weights of "+chains)
}

// estimate builds the program of a training, and estimates its memory.
func (t *training) estimate(device tensor.Device) (*Memory, error) {
	program, err := t.build(device)
	if err != nil {
		return nil, err
	}
	return t.memory(device, program)
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
		m, err := u.estimate(device)
		if err != nil {
			return false
		}
		m.Loaded = t.dataBytes()
		return m.within(onHost, onDevice)
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
