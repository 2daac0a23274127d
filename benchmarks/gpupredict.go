package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// plan is a device that keeps the workload it is given and loads nothing.
type plan struct {
	tensor.Device
	schedule tensor.Workload
}

var errPlanned = errors.New("benchmarks: a plan loads nothing")

// Load implements tensor.Device.
func (p *plan) Load(s tensor.Workload) (tensor.Runner, error) {
	p.schedule = s
	return nil, errPlanned
}

// scheduleOf returns a program's launches.
func scheduleOf(program *graph.Program, chains int) (tensor.Workload, error) {
	p := new(plan)
	if _, err := program.Load(p, graph.LoadOptions{Seed: 1, Chains: chains}); !errors.Is(err, errPlanned) {
		return tensor.Workload{}, errors.Wrap(err, "benchmarks: a plan")
	}
	p.schedule.Keeps = false
	return p.schedule, nil
}

// models are the values of --model.
var models = map[string]cuda.Model{"h100": cuda.H100, "h200": cuda.H200}

// modelFlag adds --model to a command.
func modelFlag(c *cobra.Command, o *options) *cobra.Command {
	c.Flags().StringVar(&o.model, "model", "", "the GPU whose model predicts: h100 or h200; by default that of the GPU in use, else h200")
	return c
}

// model returns the model that predicts: the one of --model, or the one of the GPU in use, or else
// the H200's.
func (r *gpuRun) model() (cuda.Model, error) {
	if r.options.model != "" {
		m, ok := models[r.options.model]
		if !ok {
			return m, errors.Errorf("benchmarks: --model must be h100 or h200, got %q", r.options.model)
		}
		return m, nil
	}
	_, name, _ := strings.Cut(r.record.Machine.GPU, ": ") // "cuda:0: NVIDIA H200, compute capability 9.0, ..."
	if m, ok := cuda.ModelOf(name); ok {
		return m, nil
	}
	return cuda.H200, nil
}

// predicted returns the time that a GPU's model predicts for a step, and its calls.
func (t training) predicted(m cuda.Model, chains int, precision string) (float64, []cuda.Predicted, error) {
	s, err := t.schedule(chains)
	if err != nil {
		return 0, nil, err
	}
	calls, step, err := cuda.Predict(s, m, cuda.Precision(precision))
	return step, calls, err
}

// addPrediction adds the model's time to the record of Pollen's step, unless the step was left out.
func (r *gpuRun) addPrediction(t training, chains int, precision string) error {
	e := r.record.entry(t.comparison(chains, precision), "pollen")
	if e == nil || e.Predicted > 0 {
		return nil
	}
	m, err := r.model()
	if err != nil {
		return err
	}
	step, _, err := t.predicted(m, chains, precision)
	if err != nil {
		return err
	}
	e.Predicted, e.Model = step, m.Name
	fmt.Printf("  predicted %.3f ms for an %s, measured %.2f times that\n", 1e3*step, m.Name, e.Seconds.Median/step)
	return r.record.save(r.options.json)
}

// predict prints the model's predictions for steps, their calls and updates, and adds them to the
// record.
func (r *gpuRun) predict() error {
	m, err := r.model()
	if err != nil {
		return err
	}
	r.record.Predicted = m.Name
	fmt.Printf("predicted by the model in package cuda, not measured: %s\n", m.Name)
	for _, chains := range r.chains {
		for _, name := range r.steps {
			for _, sampler := range r.samplers {
				for _, precision := range r.precisions {
					t, err := parseTraining(name, sampler)
					if err != nil {
						return err
					}
					if err := r.predictStep(m, t, chains, precision); err != nil {
						return err
					}
				}
			}
		}
	}
	if slices.Contains(r.work, "networks") {
		if err := r.predictNetworks(m); err != nil {
			return err
		}
	}
	for _, n := range r.updates {
		if err := r.predictUpdate(m, n); err != nil {
			return err
		}
	}
	return r.record.write(&r.options)
}

func (r *gpuRun) predictStep(m cuda.Model, t training, chains int, precision string) error {
	step, calls, err := t.predicted(m, chains, precision)
	if err != nil {
		return err
	}
	r.putPrediction(m, t.comparison(chains, precision), float64(chains*t.batch), step, calls)
	return nil
}

// putPrediction prints the predicted times of a step and of its calls, and adds them to the record.
func (r *gpuRun) putPrediction(m cuda.Model, comparison string, images, step float64, calls []cuda.Predicted) {
	r.predictEntry(m, comparison, "pollen", step, images/step, "images")
	work := 0.0
	for _, c := range calls {
		work += c.Seconds
	}
	fmt.Printf("%s: %.1f us, %.0f steps/s, %.4g images/s; the calls only %.1f us\n", comparison, 1e6*step, 1/step, images/step, 1e6*work)
	fmt.Println("       work            end      slack  GPU    bound         bytes  kernel")
	for _, c := range calls {
		r.predictEntry(m, "calls of "+comparison, c.Kernel+" "+c.Label, c.Seconds, c.Bytes/c.Seconds/1e9, "GB")
		fmt.Printf("  %9.2f us  %9.2f  %9.2f  %3.0f %%  %-7s %8.1f MB  %s %v %s\n",
			1e6*c.Seconds, 1e6*c.End, 1e6*c.Slack, 100*c.Fraction, c.Bound, c.Bytes/1e6, c.Kernel, c.Blocks, c.Label)
	}
}

// predictUpdate predicts pSGLD's update, next to a copy of the same number of bytes.
func (r *gpuRun) predictUpdate(m cuda.Model, n int) error {
	program, err := updateProgram(n)
	if err != nil {
		return err
	}
	s, err := scheduleOf(program, 1)
	if err != nil {
		return err
	}
	calls, _, err := cuda.Predict(s, m, cuda.FP32)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Launch != "psgld_update_f32" {
			continue
		}
		comparison := fmt.Sprintf("psgld update of %d parameters", n)
		rate := c.Bytes / c.Seconds
		r.predictEntry(m, comparison, "pollen", c.Seconds, rate/1e9, "GB").Fraction = rate / m.Memory
		fmt.Printf("%s: %.1f us, %s, %.0f %% of a copy's rate\n", comparison, 1e6*c.Seconds, c.Bound, 100*rate/m.Memory)
	}
	return nil
}

func (r *gpuRun) predictEntry(m cuda.Model, comparison, name string, seconds, rate float64, unit string) *entry {
	e := entry{Case: comparison, Side: name, Seconds: figures{Median: seconds, Min: seconds, Max: seconds}, Rate: rate, Unit: unit, Model: m.Name}
	r.record.Entries = append(r.record.Entries, e)
	return &r.record.Entries[len(r.record.Entries)-1]
}

// schedule returns a training step's launches.
func (t training) schedule(chains int) (tensor.Workload, error) {
	program, err := t.compile()
	if err != nil {
		return tensor.Workload{}, err
	}
	return scheduleOf(program, chains)
}
