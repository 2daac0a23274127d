package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/export"
	"github.com/pollen-ml/pollen/internal/npz"
)

// request is a request to the peer.
type request struct {
	Images  string `json:"images"`  // an archive of arrays, one for each set of images, and labels of train
	Samples string `json:"samples"` // exported for PyTorch
	Of      []int  `json:"of"`      // the samples to use
	Threads int    `json:"threads"`
}

// peer returns the scores of pytorch-ood's detectors, by "DETECTOR/SET", for sets of images,
// which must include train and test.
func (s study) peer(ctx context.Context, run *bayes.Run, sets map[string]*datasets.Dataset) (map[string][]float64, error) {
	temporary, err := os.MkdirTemp("", "detectors")
	if err != nil {
		return nil, errors.Wrap(err, "detectors")
	}
	defer os.RemoveAll(temporary)
	r := request{Images: filepath.Join(temporary, "images.npz"), Samples: filepath.Join(temporary, "samples.safetensors"), Threads: runtime.GOMAXPROCS(0)}
	arrays := []npz.Array{{Name: "labels", Shape: []int{sets["train"].Len()}, Values: sets["train"].Labels}}
	for name, d := range sets {
		arrays = append(arrays, npz.Array{Name: name, Shape: []int{d.Len(), d.Channels, d.Height, d.Width}, Values: d.Images})
	}
	if err := npz.Write(r.Images, arrays...); err != nil {
		return nil, err
	}
	if err := export.Torch(run, r.Samples); err != nil {
		return nil, err
	}
	draws, err := run.Draws()
	if err != nil {
		return nil, err
	}
	n := min(peerSamples, draws.Len())
	for i := range n {
		r.Of = append(r.Of, (i+1)*draws.Len()/n-1)
	}
	asked, err := json.Marshal(r)
	if err != nil {
		return nil, errors.Wrap(err, "detectors")
	}
	var complaints strings.Builder
	program := exec.CommandContext(ctx, s.python, "-c", peerProgram)
	program.Stdin, program.Stderr = bytes.NewReader(asked), &complaints
	answer, err := program.Output()
	if err != nil {
		return nil, errors.Wrapf(err, "detectors: %s: %s", s.python, complaints.String())
	}
	var scores map[string][]float64
	if err := json.Unmarshal(answer, &scores); err != nil {
		return nil, errors.Wrap(err, "detectors: answer of the peer")
	}
	return scores, checkProbabilities(ctx, run, sets["test"], r.Of, scores["probabilities/test"])
}

// checkProbabilities returns an error unless the peer's probabilities, averaged over some samples,
// are Pollen's: otherwise it sees the features of another network.
func checkProbabilities(ctx context.Context, run *bayes.Run, test *datasets.Dataset, of []int, got []float64) error {
	want := make([]float64, len(got))
	sample := 0
	_, err := run.Predictions(ctx, test, func(probabilities []float32, _ float64) error {
		if len(probabilities) != len(want) {
			return errors.Errorf("detectors: the peer has %d probabilities, want %d", len(want), len(probabilities))
		}
		if slices.Contains(of, sample) {
			for i, p := range probabilities {
				want[i] += float64(p) / float64(len(of))
			}
		}
		sample++
		return nil
	})
	if err != nil {
		return err
	}
	for i, w := range want {
		if math.Abs(w-got[i]) > tolerance {
			return errors.Errorf("detectors: probability %d is %v by the peer, want %v", i, got[i], w)
		}
	}
	return nil
}
