package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// timeCalls times each call of the training steps, as the device makes it.
func (r *gpuRun) timeCalls(ctx context.Context) error {
	for _, precision := range r.precisions {
		err := r.eachStep(func(t training, chains int) error {
			return r.timeCallsOf(ctx, stepCalls{
				comparison: "calls of " + t.comparison(chains, precision), precision: precision, chains: chains, images: chains * t.batch,
				load: func(device tensor.Device) (contestant, error) {
					p, err := loadPollen(t, device, chains)
					if err == nil {
						err = graph.Write(p.(*pollen).session, "images", 0, 0, t.normalImages())
					}
					return p, err
				},
				predicted: func(m cuda.Model) (float64, error) {
					step, _, err := t.predicted(m, chains, precision)
					return step, err
				},
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// recorder is a device that remembers the runner of the last workload it loaded.
type recorder struct {
	tensor.Device
	runner tensor.Runner
}

// Load implements tensor.Device.
func (r *recorder) Load(s tensor.Workload) (tensor.Runner, error) {
	var err error
	r.runner, err = r.Device.Load(s)
	return r.runner, err
}

// callTimer is a runner that can time the calls of a step.
type callTimer interface {
	TimeCalls(repetitions int, m cuda.Model) ([]cuda.CallTime, error)
}

// stepCalls are a step whose calls are timed.
type stepCalls struct {
	comparison, precision string
	chains, images        int // images of all chains
	load                  func(tensor.Device) (contestant, error)
	predicted             func(cuda.Model) (float64, error)
}

// timeCallsOf times the calls of a step, unless they are on record or it is too late.
func (r *gpuRun) timeCallsOf(ctx context.Context, s stepCalls) error {
	if r.known(s.comparison, "step") || r.late(s.comparison) {
		return nil
	}
	done, err := r.watch(s.comparison, "step", r.patience)
	if err != nil {
		return err
	}
	defer done()
	return r.failure(ctx, s.comparison, "step", r.measureCalls(ctx, s))
}

func (r *gpuRun) measureCalls(ctx context.Context, s stepCalls) (err error) {
	device := new(recorder)
	does, err := r.openOwn(s.precision, func(opened tensor.Device) (contestant, error) {
		device.Device = opened
		return s.load(device)
	})
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, does.close()) }()
	step := &side{name: "step", does: does, limit: maxGPUSteps}
	if err := alternate(ctx, []*side{step}, r.options.rounds); err != nil {
		return err
	}
	timer, ok := device.runner.(callTimer)
	if !ok {
		return errors.Errorf("benchmarks: the runner must have TimeCalls, got %T", device.runner)
	}
	m, err := r.model()
	if err != nil {
		return err
	}
	calls, err := timer.TimeCalls(r.repetitions, m)
	r.putCalls(m, s.chains, s.comparison, calls)
	if err != nil {
		return err
	}
	predicted, err := s.predicted(m)
	if err != nil {
		return err
	}
	r.putTotals(m, s.images, s.comparison, calls, step, predicted)
	return r.record.save(r.options.json)
}

// putCalls prints a line for each call and adds it to the record.
func (r *gpuRun) putCalls(m cuda.Model, chains int, comparison string, calls []cuda.CallTime) {
	fmt.Printf("%s, %d repetitions\n", comparison, r.repetitions)
	fmt.Println("         us  predicted  bound      GB/s        blocks  threads  shared  symbol")
	for _, c := range calls {
		rate := c.Bytes / c.Measured / 1e9
		r.record.Entries = append(r.record.Entries, entry{
			Case: comparison, Side: strings.TrimSpace(c.Kernel + " " + c.Label),
			Seconds: figures{Median: c.Measured, Min: c.Measured, Max: c.Measured, Rounds: 1}, Rate: rate, Unit: "GB", Predicted: c.Seconds, Model: m.Name,
			Call: &call{Symbol: c.Kernel, Label: c.Label, Blocks: c.Blocks, Chains: chains, Threads: c.Threads, Shared: c.Shared, Bound: c.Bound},
		})
		blocks := fmt.Sprintf("%dx%dx%d", c.Blocks[0], max(1, c.Blocks[1]), chains)
		fmt.Printf("  %9.2f  %9.2f  %-7s %8.1f  %12s  %7d  %6d  %s %s\n",
			1e6*c.Measured, 1e6*c.Seconds, c.Bound, rate, blocks, c.Threads, c.Shared, c.Kernel, c.Label)
	}
}

// putTotals prints the sum of the calls' times and the longest chain of dependent calls next to the
// step's measured time, and adds them to the record.
func (r *gpuRun) putTotals(m cuda.Model, images int, comparison string, calls []cuda.CallTime, step *side, predicted float64) {
	sum, expected, line := 0.0, 0.0, 0.0
	for _, c := range calls {
		sum, expected, line = sum+c.Measured, expected+c.Seconds, max(line, c.End)
	}
	add := func(name string, f figures, rate, predicted float64, unit string) {
		r.record.Entries = append(r.record.Entries, entry{Case: comparison, Side: name, Seconds: f, Rate: rate, Unit: unit, Predicted: predicted, Model: m.Name})
		fmt.Printf("  %9.2f  %9.2f  %s\n", 1e6*f.Median, 1e6*predicted, name)
	}
	once := func(seconds float64) figures {
		return figures{Median: seconds, Min: seconds, Max: seconds, Rounds: 1}
	}
	add("sum of the calls", once(sum), 0, expected, "")
	add("longest line of calls", once(cuda.CriticalPath(calls)), 0, line, "")
	f := step.figures()
	add("step", f, float64(images)/f.Median, predicted, "images")
}

// normalImages returns images of normally distributed pixels: with zeros, or constant data, a GPU
// uses less power and may multiply faster.
func (t training) normalImages() []byte {
	channels, side := t.images()
	normals := make([]float32, t.examples()*channels*side*side)
	random.Normals(normals, 0, random.Address{})
	images := make([]byte, len(normals))
	for i, z := range normals {
		images[i] = byte(math.Round(min(255, max(0, 255*(0.5+0.15*float64(z))))))
	}
	return images
}
