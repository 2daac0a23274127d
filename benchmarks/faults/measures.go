package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/optimizers"
)

// maxGrowth is the fraction by which 10 000 kept samples may need more memory than 100.
const maxGrowth = 0.05

// many compares the memory for many kept samples with the memory for 100, in the same number of
// steps.
func many(h *harness) error {
	if h.samples == 0 {
		return nil
	}
	run := func(samples int) []string {
		const flags = "fit --data notmnist --model lenet-small --method sghmc --schedule constant:0.002 --batch 10 --burn-in 0"
		return append(strings.Fields(fmt.Sprintf("%s --epochs %d --samples %d", flags, h.samples/20, samples)), "--folder", fmt.Sprint("many-", samples))
	}
	peaks := map[string][]float64{}
	for _, samples := range []int{100, h.samples} {
		for range 3 {
			if err := os.RemoveAll(filepath.Join(h.work, fmt.Sprint("many-", samples))); err != nil {
				return errors.Wrap(err, "many")
			}
			for _, arguments := range [][]string{run(samples), {"eval", "--page", "page", fmt.Sprint("many-", samples)}} {
				p, err := h.must(nil, arguments...)
				if err != nil {
					return err
				}
				key := fmt.Sprint(arguments[0], " ", samples)
				peaks[key] = append(peaks[key], float64(peak(p.ProcessState))/1e6)
			}
		}
	}
	for _, task := range []string{"fit", "eval"} {
		few, lots := median(peaks[task+" 100"]), median(peaks[fmt.Sprint(task, " ", h.samples)])
		h.report("%s: %.1f MB at most with 100 samples, %.1f MB with %d: %+.1f %%", task, few, lots, h.samples, 100*(lots/few-1))
		if lots > few*(1+maxGrowth) {
			h.fail("%s: memory grows by %.1f %%", task, 100*(lots/few-1))
		}
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// cost measures the time of a sample with its checkpoint, in a run that keeps a hundred times the
// usual number of samples, and this time as a fraction of a usual run's.
func cost(h *harness) error {
	if h.repeats == 0 {
		return nil
	}
	splits, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		return err
	}
	// A sample per 300 steps, as in the main job, and per 3 steps, each with a checkpoint.
	const usual, many = 2, 200
	seconds := map[int][]float64{}
	var sums []float64
	for i := range h.repeats {
		for _, samples := range []int{usual, many} {
			spec := bayes.Spec{Network: "lenet-small", Epochs: 1, BurnIn: new(0), Samples: samples, Schedule: optimizers.Constant{Rate: 0.2}}
			dir := filepath.Join(h.work, fmt.Sprint("cost-", samples, "-", i))
			began := processorSeconds()
			if _, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: splits.Train}, dir); err != nil {
				return err
			}
			seconds[samples] = append(seconds[samples], processorSeconds()-began)
			if samples == usual {
				sum, err := sumAll(dir)
				if err != nil {
					return err
				}
				sums = append(sums, sum)
			}
		}
	}
	fit := median(seconds[usual])
	each := (median(seconds[many]) - fit) / (many - usual)
	h.report("lenet-small, an epoch of MNIST, a sample in 300 steps, processor time: fit %.2f s,", fit)
	h.report("a sample and its checkpoint %.1f ms (%.2f %% in all),", 1000*each, 100*usual*each/fit)
	h.report("checksums of its files %.2f ms (%.3f %%)", 1000*median(sums), 100*median(sums)/fit)
	return evalCost(h, filepath.Join(h.work, fmt.Sprint("cost-", many, "-0")), splits.Test)
}

// fewImages is the number of images that are scored to measure the cost of checksums, whose
// fraction of the time falls with the number of images.
const fewImages = 1000

// evalCost measures the time of checksums in an evaluation, which reads each sample once.
func evalCost(h *harness, dir string, test *datasets.Dataset) error {
	few, err := test.Slice(0, fewImages)
	if err != nil {
		return err
	}
	var scored, checked []float64
	samples := 0
	for range h.repeats {
		run, err := bayes.Open(dir)
		if err != nil {
			return err
		}
		began := processorSeconds()
		a, err := run.Predictions(context.Background(), few, nil)
		if err != nil {
			return err
		}
		scored, samples = append(scored, processorSeconds()-began), a.Samples
		paths, err := run.Samples()
		if err != nil {
			return err
		}
		var seconds float64
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return errors.Wrap(err, "cost")
			}
			began := processorSeconds()
			if _, err := checksum.Check(content, checksum.Header(content)); err != nil {
				return errors.WithMessage(err, path)
			}
			seconds += processorSeconds() - began
		}
		checked = append(checked, seconds)
	}
	h.report("eval of %d samples on %d images, processor time: %.2f s, checksums %.1f ms of it (%.3f %%)", samples, fewImages, median(scored),
		1000*median(checked), 100*median(checked)/median(scored))
	return nil
}

// sumAll returns the time that the checksums of a run's files take, with a checkpoint for each
// sample.
func sumAll(dir string) (seconds float64, err error) {
	for pattern, times := range map[string]int{"samples/*": 1, "checkpoint/*": 2} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return 0, errors.Wrap(err, "cost")
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return 0, errors.Wrap(err, "cost")
			}
			began := time.Now()
			for range times {
				sha256.Sum256(content)
			}
			seconds += time.Since(began).Seconds()
		}
	}
	return seconds, nil
}
