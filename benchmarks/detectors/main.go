// Command detectors compares Pollen's scores of how strange an image is with the detectors of
// pytorch-ood, on images that are near the training images: of held-out classes, digits of another
// source, and letters.
//
//	go run ./benchmarks/detectors -python PYTHON -usps zip.test -cifar DIR
//
// PYTHON is a Python with torch, pytorch-ood and safetensors. Without it the program prints
// Pollen's scores only.
//
// For each data set and seed it trains network cnn by the default method, on 6000 images of MNIST,
// Fashion-MNIST or CIFAR-10, and scores 2000 test images, and 2000 images of each other source. The
// last two classes of a data set are those held out. Both sides see the same posterior samples, the
// six of Pollen's own detector, and average a score over them; pytorch-ood's detectors are fitted
// to the features of all training images. The program stops if the two sides do not compute the
// same probabilities.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/report"
)

//go:embed peer.py
var peerProgram string

const (
	trainingImages = 6000
	testImages     = 2000 // at most, and of each other source
	peerSamples    = 6    // the maximum of Pollen's detector
	tolerance      = 1e-3 // of probabilities that both sides compute
)

// study has the flags.
type study struct {
	python, data, usps, cifar, dir string
	seeds                          int
}

// entry is one score of one pair and seed.
type entry struct {
	Pair  string  `json:"pair"`
	Seed  uint64  `json:"seed"`
	Side  string  `json:"side"` // "Pollen" or "pytorch-ood"
	Score string  `json:"score"`
	AUROC float64 `json:"auroc"`
	FPR95 float64 `json:"fpr95"`
}

// subject is a data set to train on, and the images that its runs score.
type subject struct {
	name string
	data *datasets.Splits
	out  map[string]*datasets.Dataset
}

func main() {
	var s study
	flag.StringVar(&s.python, "python", "", "Python with torch, pytorch-ood and safetensors")
	flag.StringVar(&s.data, "data", os.Getenv("POLLEN_DATA"), "directory with data sets, searched first")
	flag.StringVar(&s.usps, "usps", "", "zip.test of USPS's digits, as published with The Elements of Statistical Learning (default: leave out)")
	flag.StringVar(&s.cifar, "cifar", "", "directory of CIFAR-10 (default: leave out)")
	flag.StringVar(&s.dir, "folder", "runs/detectors", "directory of the runs, which are resumed")
	flag.IntVar(&s.seeds, "seeds", 5, "number of seeds")
	record := flag.String("json", "", "write the figures to this file")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "detectors: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, release := interrupt.Context()
	defer release()
	if err := s.run(ctx, *record); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s study) run(ctx context.Context, record string) error {
	if s.seeds < 1 {
		return errors.Errorf("detectors: seeds must be at least 1, got %d", s.seeds)
	}
	if err := config.CheckParent("json", record); err != nil {
		return err
	}
	subjects, err := s.subjects(ctx)
	if err != nil {
		return err
	}
	var entries []entry
	for seed := range s.seeds {
		for _, of := range subjects {
			found, err := s.compare(ctx, of, uint64(seed+1))
			if err != nil {
				return errors.WithMessagef(err, "%s, seed %d", of.name, seed+1)
			}
			entries = append(entries, found...)
			if record == "" {
				continue
			}
			content, err := json.MarshalIndent(entries, "", " ")
			if err != nil {
				return errors.Wrap(err, "detectors")
			}
			if err := os.WriteFile(record, append(content, '\n'), 0o644); err != nil {
				return errors.Wrap(err, "detectors")
			}
		}
	}
	return printed(entries)
}

// subjects returns all data sets that are available.
func (s study) subjects(ctx context.Context) ([]subject, error) {
	open := func(name string, classes ...string) (*datasets.Splits, error) {
		return datasets.Open(name, datasets.Options{Context: ctx, Dir: s.data, Validation: 0.1, WithoutClasses: classes})
	}
	withoutLast := func(name string, data *datasets.Splits) (subject, error) {
		names := data.Test.ClassNames
		known, held := names[:len(names)-2], names[len(names)-2:]
		in, err := open(name, held...)
		if err != nil {
			return subject{}, err
		}
		out, err := data.Test.WithoutClasses(known...)
		if err != nil {
			return subject{}, err
		}
		title := data.Test.Name + " without " + strings.Join(held, " and ")
		return subject{title, in, map[string]*datasets.Dataset{strings.Join(held, " and "): out}}, nil
	}
	digits, err := open("mnist")
	if err != nil {
		return nil, err
	}
	letters, err := datasets.Load("notmnist", datasets.Test, datasets.Options{Context: ctx, Dir: s.data})
	if err != nil {
		return nil, err
	}
	whole := subject{"mnist", digits, map[string]*datasets.Dataset{"notMNIST": letters}}
	if s.usps != "" {
		if whole.out["USPS"], err = readUSPS(s.usps); err != nil {
			return nil, err
		}
	}
	subjects := []subject{whole}
	for _, name := range []string{"mnist", "fashion-mnist", s.cifar} {
		if name == "" {
			continue
		}
		data, err := open(name)
		if err != nil {
			return nil, err
		}
		of, err := withoutLast(name, data)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, of)
	}
	return subjects, nil
}

// readUSPS reads digits, a line with the label and 16x16 pixels from -1 to 1 for each. It enlarges
// them to 20x20 and puts a border of 4 pixels around them, as MNIST does.
func readUSPS(path string) (*datasets.Dataset, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "detectors")
	}
	const side, inner, border = 16, 20, 4
	var pixels []byte
	var labels []int32
	for number, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		fields := strings.Fields(line)
		if len(fields) != 1+side*side {
			return nil, errors.Errorf("detectors: %s: line %d must have %d numbers, got %d", path, number+1, 1+side*side, len(fields))
		}
		values := make([]float64, len(fields))
		for i, field := range fields {
			if values[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, errors.Wrapf(err, "detectors: %s: line %d", path, number+1)
			}
		}
		labels = append(labels, int32(values[0]))
		image := make([]byte, (inner+2*border)*(inner+2*border))
		for y := range inner {
			for x := range inner {
				v := interpolated(values[1:], side, (float64(y)+0.5)*side/inner-0.5, (float64(x)+0.5)*side/inner-0.5)
				image[(y+border)*(inner+2*border)+x+border] = byte(math.Round((v + 1) / 2 * 255))
			}
		}
		pixels = append(pixels, image...)
	}
	return datasets.New("usps", pixels, labels, 1, inner+2*border, inner+2*border, strings.Split("0 1 2 3 4 5 6 7 8 9", " "))
}

// interpolated returns a square image's value between its pixels, linearly in both directions.
func interpolated(image []float64, side int, y, x float64) float64 {
	y, x = min(max(y, 0), float64(side-1)), min(max(x, 0), float64(side-1))
	top, left := int(y), int(x)
	bottom, right := min(top+1, side-1), min(left+1, side-1)
	across := func(row int) float64 {
		return image[row*side+left] + (x-float64(left))*(image[row*side+right]-image[row*side+left])
	}
	return across(top) + (y-float64(top))*(across(bottom)-across(top))
}

// few returns at most n images of the data, as Dataset.First does.
func few(data *datasets.Dataset, n int) (*datasets.Dataset, error) {
	if data.Len() <= n {
		return data, nil
	}
	return data.First(n)
}

// compare trains a run, or resumes it, and scores all its pairs.
func (s study) compare(ctx context.Context, of subject, seed uint64) ([]entry, error) {
	dir := filepath.Join(s.dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(filepath.Base(of.name), " ", "-"), seed))
	run, err := bayes.Resume(ctx, dir, of.data)
	if none := (*bayes.NotARunError)(nil); errors.As(err, &none) {
		run, err = bayes.Fit(ctx, bayes.Spec{Network: "cnn", Subset: trainingImages, Seed: seed}, of.data, dir)
	}
	if err != nil {
		return nil, err
	}
	test, err := few(of.data.Test, testImages)
	if err != nil {
		return nil, err
	}
	train, err := of.data.Train.First(trainingImages)
	if err != nil {
		return nil, err
	}
	in, err := run.Predictions(ctx, test, nil)
	if err != nil {
		return nil, err
	}
	sets := map[string]*datasets.Dataset{"train": train, "test": test}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(of.out)) {
		out, err := few(of.out[name], testImages)
		if err != nil {
			return nil, err
		}
		sets[name] = out
		strange, err := run.Predictions(ctx, out, nil)
		if err != nil {
			return nil, err
		}
		for _, score := range evaluate.OODScores() {
			e := entry{Pair: of.name + " | " + name, Seed: seed, Side: "Pollen", Score: score.Title}
			if err := e.detect(score.Of(in), score.Of(strange)); err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
	}
	if s.python == "" {
		return entries, nil
	}
	peer, err := s.peer(ctx, run, sets)
	if err != nil {
		return nil, err
	}
	theirs, err := peerEntries(of, seed, peer)
	return append(entries, theirs...), err
}

func (e *entry) detect(in, out []float64) error {
	d, err := evaluate.Detect(in, out)
	e.AUROC, e.FPR95 = d.AUROC, d.FPR95In
	return err
}

// peerEntries are the entries of a peer's scores.
func peerEntries(of subject, seed uint64, scores map[string][]float64) (entries []entry, err error) {
	for _, key := range slices.Sorted(maps.Keys(scores)) {
		detector, set, _ := strings.Cut(key, "/")
		if set == "test" || detector == "probabilities" {
			continue
		}
		e := entry{Pair: of.name + " | " + set, Seed: seed, Side: "pytorch-ood", Score: detector}
		if err := e.detect(scores[detector+"/test"], scores[key]); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// printed prints the AUROC of each score, by pair and as the mean over the pairs, averaged over the
// seeds.
func printed(entries []entry) error {
	var pairs, scores []string
	values := map[[2]string][]float64{}
	for _, e := range entries {
		score := e.Side + ": " + e.Score
		if !slices.Contains(pairs, e.Pair) {
			pairs = append(pairs, e.Pair)
		}
		if !slices.Contains(scores, score) {
			scores = append(scores, score)
		}
		values[[2]string{e.Pair, score}] = append(values[[2]string{e.Pair, score}], e.AUROC)
	}
	var columns []report.Column
	for _, pair := range append(slices.Clone(pairs), "mean") {
		columns = append(columns, report.Column{Title: pair})
	}
	table := report.NewTable("AUROC", columns...)
	for _, score := range scores {
		var cells []any
		total := 0.0
		for _, pair := range pairs {
			mean, standardError := evaluate.MeanAndError(values[[2]string{pair, score}])
			total += mean / float64(len(pairs))
			cells = append(cells, fmt.Sprintf("%.4f ± %.4f", mean, standardError))
		}
		if err := table.Add(score, append(cells, fmt.Sprintf("%.4f", total))...); err != nil {
			return err
		}
	}
	return table.WriteText(os.Stdout)
}
