package optest

import (
	"slices"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Cases returns the rows of all ops of packages graph/op and graph/op/array.
func Cases() []Case {
	var all []Case
	for _, family := range [][]Case{
		convolutionCases(), matrixCases(), pointwiseCases(), poolCases(), lossCases(), gatherCases(), builtinCases(), densityCases(),
		normalizeCases(), cumulativeCases(), likelihoodCases(), functionCases(), arithmeticCases(), sumCases(), patchCases(), groupedCases(), augmentCases(),
		axesCases(), comparisonCases(), batchMatrixCases(),
	} {
		all = append(all, family...)
	}
	return all
}

// OnePerOp returns the first row of each op, without the large ones: one shape for each.
func OnePerOp() []Case {
	seen := map[string]bool{}
	return slices.DeleteFunc(Cases(), func(c Case) bool {
		name := c.Name // a row that builds a graph
		if c.Op != nil {
			name = c.Op.Name()
		}
		again := seen[name]
		if !c.Speed {
			seen[name] = true
		}
		return c.Speed || again
	})
}

// Run tests every row, and a whole network, on a device.
func Run(t *testing.T, device tensor.Device) {
	RunCases(t, device, Cases())
	if index, _, err := Shard(); err != nil || index > 0 {
		return // RunCases has reported the error
	}
	t.Run("network", func(t *testing.T) {
		if err := checkNetwork(device); err != nil {
			t.Error(err)
			Dump(t, err, device, func() []string {
				p, err := network(tensor.Float32)
				if err != nil {
					return nil
				}
				return append(Calls(device, p, networkChains), p.Dump())
			})
		}
	})
}

// RunCases tests the caller's rows on a device.
func RunCases(t *testing.T, device tensor.Device, cases []Case) {
	index, count, err := Shard()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for i := range cases {
		c := &cases[i]
		if names[c.Name] {
			t.Errorf("optest: two rows are called %q", c.Name)
		}
		names[c.Name] = true
		if i%count != index {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if err := c.check(device); err != nil {
				t.Error(err)
				Dump(t, err, device, func() []string { return c.about(err, device) })
			}
		})
	}
}

// Benchmark measures the rows with Speed on a device, in float32: the output, and the gradients
// without it. It reports the time of a step, the gigabytes per second of the launches' arguments,
// and the billions of floating-point operations per second. Gradients count as twice the output's
// operations, which the two operands of a product need, or as once for a single input.
func Benchmark(b *testing.B, device tensor.Device) { BenchmarkCases(b, device, Cases()) }

// BenchmarkCases measures the caller's rows on a device.
func BenchmarkCases(b *testing.B, device tensor.Device, cases []Case) {
	for i := range cases {
		c := &cases[i]
		if !c.Speed {
			continue
		}
		forward, err := c.compile(tensor.Float32, true, false)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.Name+"/forward", func(b *testing.B) { forward.measure(b, device, c.Flops) })
		if c.NoGradient {
			continue
		}
		backward, err := c.compile(tensor.Float32, false, true)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.Name+"/backward", func(b *testing.B) {
			backward.measure(b, device, c.Flops*float64(min(2, len(backward.variables))))
		})
	}
}

// stepsPerRun is the number of steps of a measured Run, so that the cost of starting it is
// negligible.
const stepsPerRun = 10

func (s *compiledCase) measure(b *testing.B, device tensor.Device, flops float64) {
	session, err := s.program.Load(device, graph.LoadOptions{Seed: seed})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	if err := s.write(session, 0, s.c.values(0)); err != nil {
		b.Fatal(err)
	}
	if s.hasGradients() {
		if err := writeFloats(session, s.dtype, cotangentName, 0, s.cotangent(0)); err != nil {
			b.Fatal(err)
		}
	}
	bytes := 0
	for _, launch := range s.launches() {
		for _, a := range launch.Arguments {
			if a.Buffer != nil {
				bytes += a.Buffer.Bytes()
			}
		}
	}
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		if err := session.Run(stepsPerRun); err != nil {
			b.Fatal(err)
		}
		steps += stepsPerRun
	}
	nanoseconds := float64(b.Elapsed().Nanoseconds()) / float64(steps)
	b.ReportMetric(nanoseconds, "ns/step")
	b.ReportMetric(flops/nanoseconds, "GFLOP/s")
	b.ReportMetric(float64(bytes)/nanoseconds, "GB/s")
}

// recorder is a device that records the workload it is asked to load.
type recorder struct {
	tensor.Device
	workload tensor.Workload
}

var errRecorded = errors.New("optest: recorded, not loaded")

func (r *recorder) Load(s tensor.Workload) (tensor.Runner, error) {
	r.workload = s
	return nil, errRecorded
}

// launches returns the program's launches.
func (s *compiledCase) launches() []tensor.Launch {
	var r recorder
	// Load always ends with errRecorded, after it has handed over the schedule.
	_, _ = s.program.Load(&r, graph.LoadOptions{})
	return r.workload.Launches
}
