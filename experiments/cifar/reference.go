package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

const (
	classes  = 10
	testSize = 10000

	// publishedSum is the beginning of the SHA-256 of the published predictions. Their accuracy is
	// publishedAccuracy.
	publishedSum      = "4299e2e90a445fcdc6b20ebfc6f233cb"
	publishedAccuracy = 0.9144
)

// source has the paths of the data and the reference, and the values that check them.
type source struct {
	data, reference string
	sum             string  // beginning of the SHA-256 of the reference
	size            int     // number of test images
	least           float64 // accuracy of the reference, reached only if the images are in the right order
}

// The normalisation of the reference's network (bnn_hmc/utils/data_utils.py), for pixels from 0 to
// 1.
var (
	mean = []float64{0.49, 0.48, 0.44}
	std  = []float64{0.2, 0.2, 0.2}
)

// load reads the training images, and all test images with the reference's probabilities.
func (s source) load(ctx context.Context, images int) (data datasets.Splits, reference []float64, err error) {
	opened, err := datasets.Open(s.data, datasets.Options{Context: ctx, Validation: -1})
	if err != nil {
		return data, nil, err
	}
	if opened.Test == nil || opened.Test.Len() != s.size || opened.Test.Classes != classes {
		return data, nil, errors.Errorf("cifar: %s: must have %d test images of %d classes", s.data, s.size, classes)
	}
	data.Test = opened.Test
	if opened.Train.Len() < images || opened.Train.Channels != len(mean) {
		return data, nil, errors.Errorf("cifar: %s: must have at least %d training images of %d channels, got %d of %d",
			s.data, images, len(mean), opened.Train.Len(), opened.Train.Channels)
	}
	if data.Train, err = first(opened.Train, images); err != nil {
		return data, nil, err
	}
	for _, d := range []*datasets.Dataset{data.Train, data.Test} {
		d.Mean, d.Std = mean, std
	}
	if reference, err = s.read(); err != nil {
		return data, nil, err
	}
	right := 0
	for i, label := range data.Test.Labels {
		row := reference[i*classes : (i+1)*classes]
		if row[label] == slices.Max(row) {
			right++
		}
	}
	if accuracy := float64(right) / float64(s.size); accuracy < s.least-1e-9 {
		return data, nil, errors.Errorf("cifar: %s: the reference's accuracy must be %.4f, got %.4f: "+
			"the test images are not in the order of CIFAR-10's test batch", s.data, s.least, accuracy)
	}
	return data, reference, nil
}

// read reads the reference's probabilities, in the order of the test images.
func (s source) read() ([]float64, error) {
	content, err := os.ReadFile(s.reference)
	if err != nil {
		return nil, errors.Wrap(err, "cifar")
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(content)); !strings.HasPrefix(sum, s.sum) {
		return nil, errors.Errorf("cifar: %s: the SHA-256 must begin with %s, got %s", s.reference, s.sum, sum)
	}
	published, _, err := report.ReadSubject(s.reference, &evaluate.Predictions{Classes: classes}, nil, nil)
	if err != nil {
		return nil, err
	}
	rows := published.In.Probabilities
	if len(rows) != s.size*classes {
		return nil, errors.Errorf("cifar: %s: must have %d lines, got %d", s.reference, s.size, len(rows)/classes)
	}
	probabilities := make([]float64, len(rows))
	for line, image := range shuffled("test", s.size) {
		copy(probabilities[image*classes:], rows[line*classes:(line+1)*classes])
	}
	return probabilities, nil
}

// shuffled returns the order of the n images of a split in TensorFlow Datasets, from which the
// reference's programs read: sorted by the MD5 of the split's name followed by the image's number.
func shuffled(split string, n int) []int {
	sums := make([][md5.Size]byte, n)
	order := make([]int, n)
	for i := range order {
		sums[i], order[i] = md5.Sum(fmt.Appendf(nil, "%s%d", split, i)), i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(sums[a][:], sums[b][:]) })
	return order
}

// first returns the first images of a training set in the order of TensorFlow Datasets. If the
// images are not in CIFAR-10's order, these are a random subset.
func first(d *datasets.Dataset, images int) (*datasets.Dataset, error) {
	var pixels []byte
	var labels []int32
	for _, i := range shuffled("train", d.Len())[:images] {
		pixels, labels = append(pixels, d.Image(i)...), append(labels, d.Labels[i])
	}
	chosen, err := datasets.New(d.Name, pixels, labels, d.Channels, d.Height, d.Width, d.ClassNames)
	if err != nil {
		return nil, err
	}
	chosen.Hashes, chosen.Place = d.Hashes, d.Place
	return chosen, nil
}
