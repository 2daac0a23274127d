package graph

import (
	"cmp"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// MetricRows is the number of steps whose metrics are kept, and the maximum for Session.Run in a
// program with metrics. With a longer ring the host would check the metrics less often, and find a
// NaN later.
const MetricRows = 128

// Compile turns the graph into a program, or returns the builder's first error. The builder must
// not be used afterwards.
//
// The passes, in order: extract copies the graph out of Gorgonia and drops what no output, metric
// or update needs; skipViews makes ops read the values before views; fuse merges producers with
// their only consumers; combine lets one op write several values; order schedules; assignBuffers
// gives each value a buffer; lower asks each op for its launches; finishStep adds those that end a
// step; plan.offsets places the buffers.
//
// Compile is deterministic: the same calls of the builder give the same program, and so the same
// bits.
func (b *Builder) Compile() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	// The ring of metrics needs the step counter, which is in the header.
	if len(b.metrics) > 0 {
		b.Header()
	}
	m, err := extract(b)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(m.checkParameters(), m.checkSizes(), m.checkMetrics()); err != nil {
		return nil, err
	}
	m.skipViews()
	m.fuse() // before order, which then sees only the ops that remain
	if m.combine() {
		m.fuse() // a value that only combined ops read has one consumer left
	}
	if err := m.order(); err != nil {
		return nil, err
	}
	p := &Program{dtype: b.dtype, updates: len(m.updates) > 0}
	plan := newPlan()
	p.assignBuffers(m, plan)
	for _, v := range m.values {
		if v.op == nil || isView(v) || isPart(v) {
			continue
		}
		l := lower(v)
		for _, out := range append(v.parts, v) {
			if err := checkLaunches(out, l.launches); err != nil {
				return nil, err
			}
		}
		plan.use(len(p.launches), l.launches)
		p.launches = append(p.launches, l.launches...)
	}
	p.finishStep(m, plan)
	// Launches have pointers to buffers, so that offsets may be set last.
	p.bytes = plan.offsets()
	return p, nil
}

// checkParameters returns an error if a parameter was made too late to be trained: it would keep
// its initial values.
func (m *module) checkParameters() error {
	for _, v := range m.values {
		if v.source != nil && v.source.parameter && v.source.late {
			return errors.Errorf("graph: parameter %q must be made before Gradients and the first update, which leave it out", v.label)
		}
	}
	return nil
}

// maxProgramBytes limits the memory of a program, so that sums of sizes do not overflow: 256 TiB,
// the address space of a process.
const maxProgramBytes = 1 << 48

// checkSizes returns an error if the values together need more memory than an address space has, or
// if the parameters together have more elements than one stream of random numbers: samplers draw
// the noise of all parameters from one.
func (m *module) checkSizes() error {
	bytes, parameters := 0, 0
	for _, v := range m.values {
		if isView(v) {
			continue
		}
		n := v.shape.Elements() // at most 2^59, see tensor.Shape.Validate
		if bytes += min(n, maxProgramBytes) * v.dtype.Size(); bytes > maxProgramBytes {
			return errors.Errorf("graph: %s: shape %v takes the program's values beyond the limit of %d GiB", v.label, v.shape, maxProgramBytes>>30)
		}
		if v.source != nil && v.source.parameter {
			if parameters += n; parameters > random.MaxElements {
				return errors.Errorf("graph: %s: shape %v takes the parameters beyond the limit of %d elements", v.label, v.shape, random.MaxElements)
			}
		}
	}
	return nil
}

// checkMetrics returns an error if a metric is an input: metrics are recorded at the end of a step,
// after the updates, whereas every other reader sees the value that the step began with.
func (m *module) checkMetrics() error {
	for _, k := range m.metrics {
		for _, v := range k.value.throughViews() {
			if v.source != nil {
				return errors.Errorf("graph: record %q: the node must be computed by an op, such as op.Sum, got the input %s", k.name, v.label)
			}
		}
	}
	return nil
}

// assignBuffers gives every value a buffer. Inputs get one in their arena, views share their
// input's, outputs get one in the chain's arena, where it survives the step, and everything else
// one in scratch memory, which chains that do not run at the same time share.
func (p *Program) assignBuffers(m *module, plan *plan) {
	pinned := map[*value]bool{}
	for _, k := range m.outputs {
		// An output that is a view shares its input's memory, so it is the input that must survive
		// the step.
		views := k.value.throughViews()
		pinned[views[len(views)-1]] = true
	}
	for _, v := range m.values {
		switch {
		case v.source != nil:
			v.buffer = tensor.NewBuffer(v.label, v.source.arena, v.dtype, v.shape.Elements())
			plan.pin(v.buffer)
			p.addInput(v)
			if v == m.header {
				p.header = v.buffer
			}
		case isView(v):
			v.buffer = v.inputs[0].buffer
		case pinned[v]:
			v.buffer = tensor.NewBuffer(v.label, tensor.Chain, v.dtype, v.shape.Elements())
		default:
			v.buffer = tensor.NewBuffer(v.label, tensor.Scratch, v.dtype, v.shape.Elements())
		}
	}
	for _, k := range m.outputs {
		plan.pin(k.value.buffer)
		p.outputs = append(p.outputs, Tensor{Name: k.name, Shape: k.value.shape, DType: k.value.dtype, buffer: k.value.buffer})
	}
	p.columns = map[string]int{}
	for i, k := range m.metrics {
		p.columns[k.name] = i
		p.metrics = append(p.metrics, k.name)
	}
}

// finishStep appends the launches that end every step: they put a row of metrics into the ring and
// increment the step counter. They come last, so that every op of the step reads the same counter.
func (p *Program) finishStep(m *module, plan *plan) {
	if m.header == nil {
		return
	}
	header := m.header.buffer
	l := &Lowering{DType: p.dtype, label: "end of step", inputs: []*tensor.Buffer{header}}
	if n := len(m.metrics); n > 0 {
		p.ring = tensor.NewBuffer("metrics", tensor.Chain, p.dtype, MetricRows*n)
		plan.pin(p.ring)
		for first := 0; first < n; first += metricsPerLaunch {
			l.record(p.ring, m.metrics[first:min(first+metricsPerLaunch, n)], first, n)
		}
	} else {
		l.label = "count step"
		l.Emit("count_step", tensor.Threads(1), tensor.Single(func(a *tensor.Args) { count(a, 0) }), l.InOut(0))
	}
	plan.use(len(p.launches), l.launches)
	p.launches = append(p.launches, l.launches...)
}

func count(a *tensor.Args, header int) { tensor.Slice[uint64](a, header)[HeaderStep]++ }

// metricsPerLaunch is the maximum number of metrics that one launch records.
const metricsPerLaunch = 16

// recordThreads is the number of a GPU's threads that add up one metric: a warp.
const recordThreads = 32

// record emits the launch that writes the sums of some metrics' elements into the step's row of
// the ring, starting at column first; the launch of the last metrics also increments the step
// counter. The row of a step is step mod MetricRows, and each row has columns metrics. The kernel
// for GPUs always takes metricsPerLaunch metrics: missing ones have 0 elements.
func (l *Lowering) record(ring *tensor.Buffer, metrics []namedValue, first, columns int) {
	last := first+len(metrics) == columns
	header, counts := l.In(0), 0
	if last {
		header, counts = l.InOut(0), 1
	}
	arguments := []tensor.Argument{tensor.InOut(ring), header}
	var elements [metricsPerLaunch]int
	var names []string
	for i := range metricsPerLaunch {
		metric := metrics[min(i, len(metrics)-1)]
		arguments = append(arguments, tensor.In(metric.value.buffer))
		if i < len(metrics) {
			elements[i] = metric.value.shape.Elements()
			names = append(names, metric.name)
		}
	}
	for _, n := range append(elements[:], first, columns, MetricRows, counts) {
		arguments = append(arguments, tensor.Int(n))
	}
	record, together := Pick(l, recordMetrics[float32], recordMetrics[float64]), len(metrics)
	l.label = "record " + strings.Join(names, ", ")
	l.Emit("record_fwd", tensor.Block(recordThreads*together), tensor.Single(func(a *tensor.Args) {
		record(a, together, first, columns)
		if last {
			count(a, 1)
		}
	}), arguments...)
}

// recordMetrics is the host's kernel. It adds in float64, whatever the type of the metric.
func recordMetrics[T float32 | float64](a *tensor.Args, count, first, columns int) {
	ring, header := tensor.Slice[T](a, 0), tensor.Slice[uint64](a, 1)
	row := ring[int(header[HeaderStep]%MetricRows)*columns+first:]
	for i := range count {
		total := 0.0
		for _, v := range tensor.Slice[T](a, 2+i) {
			total += float64(v)
		}
		row[i] = T(total)
	}
}
