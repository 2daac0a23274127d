package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/file"
)

// reference has HMC's predictions for the test images, from two runs that share only the posterior,
// and how well these have mixed.
type reference struct {
	Data    string      `json:"data"` // hash of the training and test data
	Network string      `json:"network"`
	Prior   string      `json:"prior"`
	Leaps   int         `json:"leaps"` // leapfrog steps per draw
	Draws   int         `json:"draws"` // draws per chain
	Halves  [seeds]half `json:"halves"`
	RHats   []float64   `json:"rHats"` // split R-hat of the label's probability, for each test image where it varies
}

// half is the result of one run of HMC.
type half struct {
	Mean        []float64             `json:"mean"` // probabilities by test image and class
	Acceptance  float64               `json:"acceptance"`
	Temperature *diagnostics.Measured `json:"temperature"` // of the directions that predictions depend on
}

// reference returns the stored reference of the posterior. If there is none, or a path to write to,
// it samples the reference.
func (s *study) reference(path string, progress io.Writer) (*reference, error) {
	p := s.posterior
	r := &reference{Data: hashOf(s.data), Network: p.network, Prior: p.prior.String(), Leaps: p.hmc.leaps}
	if p.stored != nil && path == "" {
		read := &reference{}
		if err := json.Unmarshal(p.stored, read); err != nil {
			return nil, errors.Wrap(err, "goldstandard: the reference")
		}
		if read.Data != r.Data || read.Network != r.Network || read.Prior != r.Prior || len(read.Halves[0].Mean) != s.data.Test.Len()*classes {
			return nil, errors.New("goldstandard: the reference is of other data, another network or prior: sample it again with -reference FILE")
		}
		return read, nil
	}
	if p.warm {
		if _, err := s.run(comparison.Entry{Title: ensemble.name, Spec: ensemble.spec(s)}); err != nil {
			return nil, err
		}
	}
	var runs []*drawn
	for i := range r.Halves {
		fmt.Fprintf(progress, "HMC, seed %d\n", i+1)
		d, err := s.hmc(i + 1)
		if err != nil {
			return nil, err
		}
		runs, r.Halves[i], r.Draws = append(runs, d), d.half, len(d.confidence[0][0])
	}
	r.RHats = splitRHats(runs)
	if path == "" {
		return r, nil
	}
	return r, r.write(path)
}

// write writes the reference, rounded to five digits after the point.
func (r reference) write(path string) error {
	r.RHats = rounded(r.RHats)
	for i := range r.Halves {
		r.Halves[i].Mean = rounded(r.Halves[i].Mean)
	}
	content, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "goldstandard: the reference")
	}
	return errors.Wrap(file.Write(path, append(content, '\n')), "goldstandard: the reference")
}

func rounded(values []float64) []float64 {
	short := make([]float64, len(values))
	for i, v := range values {
		short[i] = math.Round(v*1e5) / 1e5
	}
	return short
}

// mean returns the mean predictions of both halves.
func (r *reference) mean() []float64 { return pool(r.Halves[0].Mean, r.Halves[1].Mean) }

// temperature returns the mean temperature of both halves, or nil if one was not measured.
func (r *reference) temperature() *diagnostics.Measured {
	return both(r.Halves[0].Temperature, r.Halves[1].Temperature)
}

// print prints how well all chains of both halves have mixed.
func (r *reference) print(out io.Writer) {
	fmt.Fprintf(out, "HMC: %d seeds x %d chains x %d draws of %d leapfrog steps, acceptance rate %.2f\n", seeds, chains, r.Draws, r.Leaps,
		(r.Halves[0].Acceptance+r.Halves[1].Acceptance)/2)
	if len(r.RHats) > 0 {
		sorted := slices.Sorted(slices.Values(r.RHats))
		fmt.Fprintf(out, "Split R-hat of the label's probability over %d test images: median %.3f, 95 %% of them below %.3f\n",
			len(sorted), sorted[len(sorted)/2], sorted[len(sorted)*95/100])
	}
}

// hashOf returns a hash of the images and labels of both splits.
func hashOf(data datasets.Splits) string {
	h := sha256.New()
	for _, d := range []*datasets.Dataset{data.Train, data.Test} {
		h.Write(d.Images)
		_ = binary.Write(h, binary.LittleEndian, d.Labels) // writing to a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// pool returns the mean of two means over equal numbers of samples.
func pool(p, q []float64) []float64 {
	mean := make([]float64, len(p))
	for i := range p {
		mean[i] = (p[i] + q[i]) / 2
	}
	return mean
}

// both returns the mean of two measurements, or nil if one is nil.
func both(a, b *diagnostics.Measured) *diagnostics.Measured {
	if a == nil || b == nil {
		return nil
	}
	standardError := math.Hypot(float64(a.StandardError), float64(b.StandardError)) / 2
	return &diagnostics.Measured{Value: (a.Value + b.Value) / 2, StandardError: diagnostics.Number(standardError)}
}
