package bayes

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// An estimate is the exact size of the arenas of the compiled programs that a call will run, plus
// the memory that Go allocates in addition, which is counted by hand at each call of add: samples
// being read, probabilities being averaged. Tests compare the sums with what the kernel reports for
// whole runs.

// Memory is an estimate of the memory that a call takes at its peak, in bytes: of the host, and of
// GPUs if it runs there. Calls refuse to begin, with a MemoryError, if it is more than available.
type Memory struct {
	// Host and Device are the peaks: everything that is kept throughout, and the phase that takes
	// most.
	Host, Device int64
	// Loaded is the part of Host that is allocated already, the data.
	Loaded int64
	// Parts lists the parts of the estimate, in the order of time.
	Parts []MemoryPart
	// Available is what the process can still take of the host's memory, and Limit what limits it,
	// such as a cgroup. DeviceAvailable is the free memory of the GPUs. A limit that is unknown is
	// math.MaxInt64.
	Available, DeviceAvailable int64
	Limit                      string
}

// MemoryPart is a part of a Memory.
type MemoryPart struct {
	Name string // such as "chains"
	// Phase is when the memory is in use, such as "after training"; "" is throughout.
	Phase        string
	Host, Device int64
}

// The phases of a run that take memory of their own. Parts during training are in use at the same
// time, parts of the other phases one after the other.
const (
	atStart        = "at the start"
	duringTraining = "during training"
	afterTraining  = "after training"
)

// garbage is the number of bytes that Go's heap takes for each byte in use. The garbage collector
// begins only when there is as much garbage as memory in use, but most of the memory in use at a
// peak is allocated at once.
const garbage = 1.25

// inHeap returns the number of bytes that the Go heap takes for the given number in use.
func inHeap(bytes int) int64 { return int64(garbage * float64(bytes)) }

// estimate adds up the parts of a Memory on a device. It keeps the first error, which done returns.
type estimate struct {
	Memory
	device tensor.Device
	err    error
}

// add adds a part: a session of a program, and some bytes in use on the Go heap.
func (e *estimate) add(name, phase string, session tensor.Footprint, heap int) {
	e.Parts = append(e.Parts, MemoryPart{name, phase, int64(session.Host) + inHeap(heap), int64(session.Device)})
}

// program returns the memory of a session of a program, and of its initial values.
func (e *estimate) program(p *graph.Program, chains int) (session tensor.Footprint, initial int) {
	if e.err == nil {
		session, initial, e.err = p.Size(e.device, chains)
	}
	return session, initial
}

// built passes the program that build returns to use.
func (e *estimate) built(build func() (*graph.Program, error), use func(*graph.Program)) {
	if e.err != nil {
		return
	}
	var p *graph.Program
	if p, e.err = build(); e.err == nil {
		use(p)
	}
}

// sizer is samples.PredictionSize or samples.FeaturePredictionSize.
type sizer func(device tensor.Device, images samples.Images, n, batch int, network samples.Network) (samples.Size, error)

// prediction returns the memory of predictions for n images.
func (e *estimate) prediction(of sizer, p parts, n, batch int) (size samples.Size) {
	if e.err == nil {
		size, e.err = of(e.device, p.inputs(), n, batch, p.network.Apply)
	}
	return size
}

// done computes the peaks from the parts, and looks up what is available.
func (e *estimate) done() (*Memory, error) {
	if e.err != nil {
		return nil, e.err
	}
	var throughout, training, alone MemoryPart
	for _, p := range e.Parts {
		switch p.Phase {
		case "":
			throughout.Host, throughout.Device = throughout.Host+p.Host, throughout.Device+p.Device
		case duringTraining:
			training.Host, training.Device = training.Host+p.Host, training.Device+p.Device
		default:
			alone.Host, alone.Device = max(alone.Host, p.Host), max(alone.Device, p.Device)
		}
	}
	e.Host, e.Device = throughout.Host+max(training.Host, alone.Host), throughout.Device+max(training.Device, alone.Device)
	limit := memory.Available()
	e.Available, e.Limit, e.DeviceAvailable = limit.Bytes, limit.Reason, memory.Unknown
	if s, ok := e.device.(tensor.Sizer); ok {
		free, err := s.Free()
		if err != nil {
			return nil, err
		}
		e.DeviceAvailable = int64(free)
	}
	return &e.Memory, nil
}

// Fits reports whether the memory is available.
func (m *Memory) Fits() bool { return m.within(m.Available, m.DeviceAvailable) }

// within reports whether a call needs at most the given bytes of the host, in addition to what is
// allocated already, and of the device.
func (m *Memory) within(host, device int64) bool {
	return m.Host-m.Loaded <= host && m.Device <= device
}

// check returns a MemoryError if a task needs more than is available. advice returns settings with
// which the task needs at most the given bytes of the host and of the device.
func (m *Memory) check(task string, advice func(host, device int64) []string) error {
	err := memory.Check(task, m.Host-m.Loaded, func(available int64) []string { return advice(available, m.DeviceAvailable) })
	if err != nil || m.Device <= m.DeviceAvailable {
		return err
	}
	free := memory.Limit{Bytes: m.DeviceAvailable, Reason: "the GPU's memory"}
	return errors.WithStack(&MemoryError{Task: task, Need: m.Device, Limit: free, Advice: advice(m.Available, m.DeviceAvailable)})
}

// checkSession returns a MemoryError if the only session of a task needs more than is available.
func checkSession(device tensor.Device, task string, session tensor.Footprint, advice ...string) error {
	e := &estimate{device: device}
	e.add("", "", session, 0)
	m, err := e.done()
	if err != nil {
		return err
	}
	return m.check(task, func(int64, int64) []string { return advice })
}

// halved returns the first of n/2, n/4, ..., 1 that fits, or 0.
func halved(n int, fits func(n int) bool) int {
	for n /= 2; n >= 1 && !fits(n); n /= 2 {
	}
	return n
}

// String returns a table of the parts and the peak.
func (m *Memory) String() string {
	var text strings.Builder
	onGPU := m.Device > 0
	for _, p := range m.Parts {
		fmt.Fprintf(&text, "  %-28s %10s", p.Name, memory.Size(p.Host))
		if onGPU {
			fmt.Fprintf(&text, " %10s on the GPU", memory.Size(p.Device))
		}
		if p.Phase != "" {
			fmt.Fprintf(&text, "  %s", p.Phase)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(&text, "memory: about %s at most, %s", memory.Size(m.Host), available(m.Available, m.Limit))
	if onGPU {
		fmt.Fprintf(&text, "; of the GPU %s, %s", memory.Size(m.Device), available(m.DeviceAvailable, "free"))
	}
	return text.String()
}

func available(bytes int64, limit string) string {
	if bytes == memory.Unknown {
		return "what is available is unknown"
	}
	return fmt.Sprintf("%s available (%s)", memory.Size(bytes), limit)
}

// datasetBytes returns the bytes of the images, labels and file names of data sets.
func datasetBytes(sets ...*datasets.Dataset) int64 {
	bytes := 0
	const header = 16 // of a string
	for _, d := range sets {
		if d == nil {
			continue
		}
		bytes += len(d.Images) + 4*len(d.Labels)
		for _, name := range d.Files {
			bytes += header + len(name)
		}
	}
	return int64(bytes)
}

// parametersOf returns the number of a program's parameters.
func parametersOf(program *graph.Program) (n int) {
	for _, p := range program.Parameters() {
		n += p.Shape.Elements()
	}
	return n
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
