package export

import (
	"context"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/npz"
)

// NPZ writes the predictions of a run for images to an archive of NumPy arrays: for S samples (or
// passes of Monte Carlo dropout), N images and K classes
//
//	probabilities        float32 [S N K]  under each sample
//	weights              float64 [S]      of the samples in averages, not normalised
//	chain, draw, step    int64 [S]        chain, number in it, and steps made, of each sample
//	mean                 float64 [N K]    the averaged probabilities
//	scaled               float64 [N K]  the probabilities of bayes.Answer: the mean, scaled to fit
//	                     the calibration images, if the run has a calibration
//	confidence, entropy, expected_entropy, mutual_information, variation_ratio   float64 [N]
//	nonconformity, mahalanobis, relative_mahalanobis, image_statistics   float64 [N], with a
//	                     detector
//	prediction_set       bool [N K], if the run is calibrated for it
//	in_distribution      bool [N], if the run is calibrated for it
//	classes, files       strings [K] and [N]; files if they are known
//	labels               int64 [N], if they are known
//
// prediction_set and in_distribution have the levels of the run's options.
func NPZ(ctx context.Context, run *bayes.Run, images *datasets.Dataset, path string) error {
	if err := checkWritable(path); err != nil {
		return err
	}
	p, err := predict(ctx, run, images)
	if err != nil {
		return err
	}
	answers, err := run.Answers(p.average, images.Files)
	if err != nil {
		return err
	}
	return p.writeNPZ(path, answers, run.Manifest().Data.ClassNames)
}

// writeNPZ writes the archive.
func (p *predicted) writeNPZ(path string, answers []bayes.Answer, classes []string) error {
	return npz.Write(path, p.arrays(answers, classes)...)
}

// arrays returns the arrays of an archive.
func (p *predicted) arrays(answers []bayes.Answer, classes []string) []npz.Array {
	s, n, k := p.size()
	chains, draws, steps := make([]int64, s), make([]int64, s), make([]int64, s)
	for i := range s {
		chain, draw, step := p.place(i)
		chains[i], draws[i], steps[i] = int64(chain), int64(draw), int64(step)
	}
	a := p.average
	arrays := []npz.Array{
		{Name: "probabilities", Shape: []int{s, n, k}, Values: p.probabilities}, {Name: "weights", Shape: []int{s}, Values: p.weights},
		{Name: "chain", Shape: []int{s}, Values: chains}, {Name: "draw", Shape: []int{s}, Values: draws}, {Name: "step", Shape: []int{s}, Values: steps},
		{Name: "mean", Shape: []int{n, k}, Values: a.Probabilities}, {Name: "classes", Shape: []int{k}, Values: classes},
	}
	for _, score := range []struct {
		name   string
		values []float64
	}{
		{"confidence", a.Confidence}, {"entropy", a.Entropy}, {"expected_entropy", a.ExpectedEntropy}, {"mutual_information", a.MutualInformation},
		{"variation_ratio", a.VariationRatio}, {"nonconformity", a.Nonconformity}, {"mahalanobis", a.Mahalanobis}, {"relative_mahalanobis", a.RelativeMahalanobis},
		{"image_statistics", a.ImageStatistics},
	} {
		if score.values != nil {
			arrays = append(arrays, npz.Array{Name: score.name, Shape: []int{n}, Values: score.values})
		}
	}
	scaled := make([]float64, 0, n*k)
	for _, answer := range answers {
		scaled = append(scaled, answer.Probabilities...)
	}
	arrays = append(arrays, npz.Array{Name: "scaled", Shape: []int{n, k}, Values: scaled})
	if answers[0].PredictionSet != nil {
		var members []bool
		for _, answer := range answers {
			members = append(members, answer.SetMembers(classes)...)
		}
		arrays = append(arrays, npz.Array{Name: "prediction_set", Shape: []int{n, k}, Values: members})
	}
	if answers[0].InDistribution != nil {
		inside := make([]bool, n)
		for i, answer := range answers {
			inside[i] = *answer.InDistribution
		}
		arrays = append(arrays, npz.Array{Name: "in_distribution", Shape: []int{n}, Values: inside})
	}
	if p.images.Files != nil {
		arrays = append(arrays, npz.Array{Name: "files", Shape: []int{n}, Values: p.images.Files})
	}
	if a.Labels != nil {
		labels := make([]int64, n)
		for i, label := range a.Labels {
			labels[i] = int64(label)
		}
		arrays = append(arrays, npz.Array{Name: "labels", Shape: []int{n}, Values: labels})
	}
	return arrays
}
