package detector

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/pkg/errors"
)

// Shape is the shape of images.
type Shape struct{ Channels, Height, Width int }

func (s Shape) size() int { return s.Channels * s.Height * s.Width }

// Detector is fitted by a Fitter, and scores images by a Scorer. It is written as JSON.
type Detector struct {
	// Samples is the number of samples that the run had.
	Samples int `json:"samples"`
	// Statistics compares statistics of images, and Members features of the network.
	Statistics *space   `json:"statistics"`
	Members    []Member `json:"members"`
	// Scales make the scores comparable.
	Scales [3]scale `json:"scales"`
}

// Member compares the features of the network under one posterior sample.
type Member struct {
	// Position is the sample's position among the samples of the run, from 0.
	Position int       `json:"position"`
	Subspace *subspace `json:"subspace"`
	// Classes and All are distributions of the projected features of training images: one of each
	// class, and one of all images together.
	Classes *gaussians `json:"classes"`
	All     *gaussians `json:"all"`
}

// relative returns the relative Mahalanobis distance of each projected row: how much farther it is
// from the nearest class than from all images together, in squared Mahalanobis distances. Source:
// Ren, Fort, Liu, Roy, Padhy and Lakshminarayanan, A simple fix to Mahalanobis distance for
// improving near-OOD detection (2021).
func (m *Member) relative(rows []float32) []float64 {
	distances := m.Classes.nearest(rows)
	for i, v := range m.All.nearest(rows) {
		distances[i] -= v
	}
	return distances
}

// scale maps a score's median on training images to 0, and its 95th percentile to 1.
type scale struct {
	Median float64 `json:"median"`
	Upper  float64 `json:"upper"`
}

// upperQuantile is the quantile that a scale maps to 1.
const upperQuantile = 0.95

func scaleOf(scores []float64) scale {
	sorted := slices.Sorted(slices.Values(scores))
	return scale{sorted[len(sorted)/2], sorted[int(upperQuantile*float64(len(sorted)))]}
}

func (s scale) of(v float64) float64 {
	return (v - s.Median) / s.Width()
}

// Scores has the scores of images, each [n]. Higher is stranger.
type Scores struct {
	// Mahalanobis is the distance of the features from all training images together, and
	// RelativeMahalanobis how much farther they are from the nearest class, both averaged over the
	// members.
	Mahalanobis, RelativeMahalanobis []float64
	// Statistics is the mean distance of the image's statistics from the nearest training images.
	Statistics []float64
	// Combined combines these three scores into one, see combine.
	Combined []float64
}

// maxBank is the maximum number of training images that images are compared with. The scales are
// computed from the scores of up to maxReference others.
const (
	maxBank      = 1000
	maxReference = 500
)

// Split returns how a Fitter divides n training images: into a bank of up to maxBank images and
// up to maxReference images for the scales. If there are few, two thirds are the bank.
func Split(n int) (bank, reference int) {
	bank = min(maxBank, n-max(1, n/3))
	return bank, min(maxReference, n-bank)
}

// Fitter fits a Detector.
type Fitter struct {
	detector  Detector
	labels    []int32 // of the images of the bank
	reference *Scorer
}

// NewFitter begins to fit a detector for a run with the given number of samples. pixels are
// training images in random order, [n C H W], and labels are theirs, [n]; n must be the sum of
// Split.
func NewFitter(pixels []byte, labels []int32, shape Shape, samples int) (*Fitter, error) {
	n := len(pixels) / shape.size()
	bank, reference := Split(n)
	if n < 2 {
		return nil, &UnfitError{fmt.Sprintf("there must be at least 2 training images, got %d", n)}
	}
	if bank+reference != n {
		return nil, errors.Errorf("detector: must have %d training images for comparisons and %d for scales, got %d", bank, reference, n)
	}
	if len(labels) != n {
		return nil, errors.Errorf("detector: %d training images must have %d labels, got %d", n, n, len(labels))
	}
	f := &Fitter{labels: labels[:bank], detector: Detector{Samples: samples}}
	rows := statisticsOf(pixels[:bank*shape.size()], shape)
	f.detector.Statistics = fitSpace(rows, len(rows)/bank)
	f.reference = f.detector.Scorer(pixels[bank*shape.size():], shape)
	return f, nil
}

// Add adds a member by the features of all training images, [n width].
func (f *Fitter) Add(position int, features []float32) error {
	bank := len(f.labels)
	width := len(features) / (bank + f.reference.n)
	m := Member{Position: position}
	var err error
	if m.Subspace, err = fitSubspace(features[:bank*width], width); err != nil {
		return err
	}
	projected, _ := m.Subspace.project(features[:bank*width])
	if m.Classes, err = fitGaussians(projected, m.Subspace.dimensions(), f.labels); err != nil {
		return err
	}
	if m.All, err = fitGaussians(projected, m.Subspace.dimensions(), make([]int32, bank)); err != nil {
		return err
	}
	f.detector.Members = append(f.detector.Members, m)
	return f.reference.Add(len(f.detector.Members)-1, 0, features[bank*width:])
}

// Detector returns the detector.
func (f *Fitter) Detector() (*Detector, error) {
	if len(f.detector.Members) == 0 {
		return nil, errors.New("detector: must have at least one sample's features")
	}
	scores, err := f.reference.Scores()
	if err != nil {
		return nil, err
	}
	f.detector.Scales = [3]scale{scaleOf(scores.Mahalanobis), scaleOf(scores.RelativeMahalanobis), scaleOf(scores.Statistics)}
	return &f.detector, nil
}

// Prepare checks a detector that was read from a file, for a run with images of the given shape,
// and computes the fields that are not stored.
func (d *Detector) Prepare(shape Shape) error {
	if d.Statistics == nil || len(d.Members) == 0 {
		return errors.New("detector: must have statistics and members")
	}
	if err := d.Statistics.check(); err != nil {
		return err
	}
	if want := len(statisticsOf(make([]byte, shape.size()), shape)); d.Statistics.features() != want {
		return errors.Errorf("detector: images have %d statistics, got %d", want, d.Statistics.features())
	}
	d.Statistics.prepare()
	last := -1
	for _, m := range d.Members {
		if m.Position <= last || m.Position >= d.Samples {
			return errors.Errorf("detector: positions must ascend below %d, got %d after %d", d.Samples, m.Position, last)
		}
		last = m.Position
		if m.Subspace == nil {
			return errors.New("detector: a member has no subspace")
		}
		if err := m.Subspace.check(); err != nil {
			return err
		}
		for _, g := range []*gaussians{m.Classes, m.All} {
			if g == nil {
				return errors.New("detector: a member has no distributions of features")
			}
			if err := g.check(m.Subspace.dimensions()); err != nil {
				return err
			}
			g.prepare(m.Subspace.dimensions())
		}
	}
	return nil
}

// At returns the index of the member whose sample has the given position, or -1.
func (d *Detector) At(position int) int {
	return slices.IndexFunc(d.Members, func(m Member) bool { return m.Position == position })
}

// Scorer accumulates the scores of images.
type Scorer struct {
	detector                          *Detector
	n, added                          int // images, and rows of features
	statistics, mahalanobis, relative []float64
}

// Scorer begins to score images [n C H W].
func (d *Detector) Scorer(pixels []byte, shape Shape) *Scorer {
	size := shape.size()
	n := len(pixels) / size
	s := &Scorer{detector: d, n: n, statistics: make([]float64, n), mahalanobis: make([]float64, n), relative: make([]float64, n)}
	inParts(n, func(lo, hi int) {
		rows := statisticsOf(pixels[lo*size:hi*size], shape)
		copy(s.statistics[lo:], d.Statistics.nearest(d.Statistics.standardise(rows)))
	})
	return s
}

// statisticsOf returns the statistics of images [n C H W], a row for each.
func statisticsOf(pixels []byte, shape Shape) []float32 {
	rows, plane := []float32(nil), make([]int32, shape.Height*shape.Width)
	for size := shape.size(); len(pixels) > 0; pixels = pixels[size:] {
		rows = statistics(rows, plane, pixels[:size], shape.Channels, shape.Height, shape.Width)
	}
	return rows
}

// Add adds the features, [... width], that the network computes under a member's sample for the
// images first, first+1, ... The features of each image must be added once for each member.
func (s *Scorer) Add(member, first int, features []float32) error {
	m := s.detector.Members[member]
	width := m.Subspace.features()
	if len(features)%width != 0 || first+len(features)/width > s.n {
		return errors.Errorf("detector: must have %d features of each of %d images, got %d numbers from image %d on", width, s.n, len(features), first)
	}
	s.added += len(features) / width
	inParts(len(features)/width, func(lo, hi int) {
		rows, rest := m.Subspace.project(features[lo*width : hi*width])
		for i, v := range m.Subspace.mahalanobis(rows, rest) {
			s.mahalanobis[first+lo+i] += v
		}
		for i, v := range m.relative(rows) {
			s.relative[first+lo+i] += v
		}
	})
	return nil
}

// Scores returns the scores of the images. It returns an error unless the features of each were
// added for each member.
func (s *Scorer) Scores() (Scores, error) {
	if want := s.n * len(s.detector.Members); s.added != want {
		return Scores{}, errors.Errorf("detector: must have features of %d images under %d samples, %d in total, got %d",
			s.n, len(s.detector.Members), want, s.added)
	}
	members, scales := float64(len(s.detector.Members)), s.detector.Scales
	scores := Scores{
		Mahalanobis: slices.Clone(s.mahalanobis), RelativeMahalanobis: slices.Clone(s.relative), Statistics: slices.Clone(s.statistics),
		Combined: make([]float64, s.n),
	}
	for i := range s.n {
		scores.Mahalanobis[i] /= members
		scores.RelativeMahalanobis[i] /= members
		scores.Combined[i] = combine(
			scales[0].of(scores.Mahalanobis[i]), scales[1].of(scores.RelativeMahalanobis[i]), scales[2].of(scores.Statistics[i]))
	}
	return scores, nil
}

// combine returns the root of the sum of the squares of those scaled scores that are above the
// median, which is 0. If none is, it returns the largest.
func combine(scaled ...float64) float64 {
	largest := slices.Max(scaled)
	if largest <= 0 {
		return largest
	}
	squares := 0.0
	for _, v := range scaled {
		squares += max(v, 0) * max(v, 0)
	}
	return math.Sqrt(squares)
}

// part is the number of images that a thread handles together.
const part = 64

// inParts calls do for parts of n images, in several threads.
func inParts(n int, do func(lo, hi int)) {
	parts := make(chan int)
	var working sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+part-1)/part) {
		working.Go(func() {
			for lo := range parts {
				do(lo, min(lo+part, n))
			}
		})
	}
	for lo := 0; lo < n; lo += part {
		parts <- lo
	}
	close(parts)
	working.Wait()
}
