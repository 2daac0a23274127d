package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
)

// gpuFlags select what is timed on a GPU.
type gpuFlags struct {
	gpu                      int
	work, steps, samplers    []string
	precisions, peers        []string
	variants                 []string
	networks, networkWork    []string
	chains, updates, batches []int
	repetitions              int
	peerDevice               string
	budget, patience         time.Duration
	onlyPredict, resume      bool
}

// gpuRun is a run of the command.
type gpuRun struct {
	gpuFlags
	options  options
	record   *record
	services []*service
	invited  []*service // the services that take part in the present work
	end      time.Time
	deadline time.Time // deadline of the present work
	failed   error     // error of the first comparison that failed
}

// begin finds the GPU and, to resume, reads the record.
func (r *gpuRun) begin() error {
	installed, err := cuda.List()
	if err != nil {
		return err
	}
	if r.gpu < 0 || r.gpu >= len(installed.GPUs) {
		return errors.Errorf("benchmarks: --gpu must be below the number of GPUs, got %d of %d", r.gpu, len(installed.GPUs))
	}
	r.record.Machine.GPU = fmt.Sprintf("%v, CUDA %s", installed.GPUs[r.gpu], installed.Version)
	fmt.Printf("%s; %s\n", r.record.Machine.GPU, r.record.Machine.describe())
	if r.resume {
		if err := r.record.resume(r.options.json); err != nil {
			return err
		}
	}
	all := r.precisions
	r.precisions = nil
	for _, p := range all {
		info, limit := installed.GPUs[r.gpu], os.Getenv(cuda.CapabilityVariable)
		if (info.Major < 8 || limit == "70") && p != string(cuda.FP32) {
			r.record.Left = append(r.record.Left, p+", which needs compute capability 8.0")
			continue
		}
		r.precisions = append(r.precisions, p)
	}
	return r.record.save(r.options.json)
}

// late reports whether there is no time left for a comparison.
func (r *gpuRun) late(comparison string) bool {
	if time.Now().Before(r.deadline) {
		return false
	}
	r.record.Left = append(r.record.Left, comparison+": no time was left")
	return true
}

func (r *gpuRun) open(precision string) (tensor.Device, error) {
	return cuda.Open(cuda.Options{GPUs: []int{r.gpu}, Precision: cuda.Precision(precision)})
}

// parseTraining reads "mnist-64-64-256:100".
func parseTraining(text, sampler string) (training, error) {
	network, size, _ := strings.Cut(text, ":")
	batch, err := strconv.Atoi(size)
	if err != nil || batch < 1 {
		return training{}, errors.Errorf("benchmarks: a step must be a network and a batch size, as mlp-100:500, got %q", text)
	}
	return training{network, batch, sampler}, nil
}

// eachStep calls time for each number of chains, step and sampler.
func (r *gpuRun) eachStep(time func(t training, chains int) error) error {
	for _, chains := range r.chains {
		for _, step := range r.steps {
			for _, sampler := range r.samplers {
				t, err := parseTraining(step, sampler)
				if err != nil {
					return err
				}
				if err := time(t, chains); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// comparison names a comparison of the step.
func (t training) comparison(chains int, precision string) string {
	return fmt.Sprintf("step %s batch %d %s, %d chains, %s", t.network, t.batch, t.sampler, chains, precision)
}
