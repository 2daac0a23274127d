package runtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// wantImages fails the test unless a run lists a number of images of each split.
func wantImages(t *testing.T, run *bayes.Run, want map[string]int) []bayes.SplitImage {
	t.Helper()
	images, err := run.Splits()
	must(t, err)
	counts := map[string]int{}
	for _, image := range images {
		counts[image.Split]++
	}
	if fmt.Sprint(counts) != fmt.Sprint(want) { // maps are printed in the order of their keys
		t.Errorf("images %v, want %v", counts, want)
	}
	return images
}

// A run lists its images, and the predictions for those that are held out.
func TestSplitsOfARun(t *testing.T) {
	all := squares(t, 90, 3, 1)
	all.Groups = make([]string, all.Len())
	for i := range all.Groups {
		all.Groups[i] = fmt.Sprint("group ", i)
	}
	train, others, err := all.Split(50)
	must(t, err)
	validation, test, err := others.Split(30)
	must(t, err)
	data := &datasets.Splits{Train: train, Validation: validation, Test: test}
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 4, Batch: 10, Samples: 2, Subset: 40}
	run := fit(t, spec, data)
	ctx := context.Background()
	answers, err := run.With(bayes.WithUnscaled()).Predict(ctx, validation)
	must(t, err)
	images := wantImages(t, run, map[string]int{"train": 40, "unused": 10, "validation": 30, "test": 10})
	for i, image := range images {
		want := bayes.SplitImage{File: fmt.Sprint(i), Split: image.Split, Class: all.ClassNames[all.Labels[i]], Group: all.Groups[i]}
		sum := sha256.Sum256(all.Image(i))
		want.Pixels = hex.EncodeToString(sum[:8])
		switch {
		case i >= 80:
			want.File = fmt.Sprint(i - 80)
		case i >= 50:
			want.File, want.Prediction, want.Confidence = fmt.Sprint(i-50), answers[i-50].Class, image.Confidence
			if difference := image.Confidence - answers[i-50].Confidence; difference > 1e-6 || difference < -1e-6 {
				t.Errorf("image %d has confidence %v, want %v", i, image.Confidence, answers[i-50].Confidence)
			}
		}
		if image != want {
			t.Errorf("image %d: %+v, want %+v", i, image, want)
		}
	}

	// Predictions for the test images stay, also if the run is resumed.
	predictions, err := run.Predictions(ctx, test, nil)
	must(t, err)
	must(t, run.RecordTest(predictions))
	if err := run.RecordTest(predictions); err != nil {
		t.Error("a second time: ", err)
	}
	_, err = bayes.Resume(ctx, run.Dir(), data)
	must(t, err)
	for _, image := range wantImages(t, run, map[string]int{"train": 40, "unused": 10, "validation": 30, "test": 10}) {
		if held := image.Split == "test" || image.Split == "validation"; held != (image.Prediction != "") {
			t.Errorf("%+v", image)
		}
	}
	v, err := bayes.Verify(run.Dir())
	must(t, err)
	if len(v.Damaged) > 0 {
		t.Error(v)
	}

	// Those for other test images do not count for new ones.
	_, err = bayes.Resume(ctx, run.Dir(), &datasets.Splits{Train: train, Validation: validation, Test: squares(t, 10, 3, 9)})
	must(t, err)
	for _, image := range wantImages(t, run, map[string]int{"train": 40, "unused": 10, "validation": 30, "test": 10}) {
		if image.Split == "test" && image.Prediction != "" {
			t.Errorf("predicted before: %+v", image)
		}
	}
	_, err = bayes.Resume(ctx, run.Dir(), data)
	must(t, err)
	predictions, err = run.Predictions(ctx, validation, nil)
	must(t, err)
	wantInvalid(t, "predictions of other images", run.RecordTest(predictions), "must have predictions for the 10 test images of the run, got 30")

	// A changed list is found, and a lost one is written again.
	path := filepath.Join(run.Dir(), rundir.SplitsFile)
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, content[:len(content)-1], 0o644))
	if _, err := run.Splits(); !errors.As(err, new(*bayes.DamagedError)) {
		t.Errorf("a changed list: %v", err)
	}
	if v, err := bayes.Verify(run.Dir()); err != nil || len(v.Damaged) != 1 || v.Damaged[0].File != path {
		t.Errorf("a changed list: %v, %v", v, err)
	}
	must(t, os.Remove(path))
	_, err = bayes.Resume(ctx, run.Dir(), data)
	must(t, err)
	wantImages(t, run, map[string]int{"train": 40, "unused": 10, "validation": 30, "test": 10})
}

// A run counts the images that it was trained on among others, by their pixels.
func TestSeen(t *testing.T) {
	all := squares(t, 90, 3, 1)
	train, others, err := all.Split(50)
	must(t, err)
	validation, _, err := others.Split(30)
	must(t, err)
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 4, Batch: 10, Samples: 2, Subset: 40}
	run := fit(t, spec, &datasets.Splits{Train: train, Validation: validation})
	seen := func(images *datasets.Dataset, wantTrained, wantValidation int) {
		t.Helper()
		if trained, held, err := run.Seen(images); err != nil || trained != wantTrained || held != wantValidation {
			t.Errorf("Seen = %d, %d, %v, want %d, %d", trained, held, err, wantTrained, wantValidation)
		}
	}
	seen(all, 40, 30) // Subset leaves out 10
	seen(squares(t, 30, 3, 2), 0, 0)
	parts := []string{run.Dir()}
	gathered, err := bayes.Gather(filepath.Join(t.TempDir(), "gathered"), parts)
	must(t, err)
	if trained, held, err := gathered.Seen(all); err != nil || trained != 40 || held != 30 {
		t.Errorf("gathered: Seen = %d, %d, %v, want 40, 30", trained, held, err)
	}

	// A list without pixels is none that a run writes.
	must(t, rundir.AddSplits(run.Dir(), []byte("file,split,class,group,prediction,confidence\n0,train,0,,,\n"), func(string) {}))
	if _, _, err := run.Seen(all); err == nil || !strings.Contains(err.Error(), "must begin with the header") {
		t.Errorf("a list without pixels: the error is %v, want one about the header", err)
	}
}

// An image that was held out for validation counts as such although a copy of it is a test image.
func TestSeenCopies(t *testing.T) {
	train, held := squares(t, 60, 3, 1), squares(t, 30, 3, 2)
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 4, Batch: 10, Samples: 2}
	run := fit(t, spec, &datasets.Splits{Train: train, Validation: held, Test: held})
	if trained, validation, err := run.Seen(held); err != nil || trained != 0 || validation != 30 {
		t.Errorf("Seen = %d, %d, %v, want 0, 30", trained, validation, err)
	}
}

// Images of one colour are no sign that a run was trained on the same images.
func TestSeenPlainImages(t *testing.T) {
	pixels := make([]byte, 12*3*16)
	for at := range pixels { // images 0 to 5 have one colour each, the others have one different pixel
		pixels[at] = byte(100 * (at / 16 % 3))
		if image := at / 48; image >= 6 && at%48 == 17 {
			pixels[at] = byte(image)
		}
	}
	labels := []int32{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	train, err := datasets.New("plain", pixels, labels, 3, 4, 4, nil)
	must(t, err)
	run := fit(t, bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 4, Batch: 4, Samples: 2}, trainOn(train))
	if trained, held, err := run.Seen(train); err != nil || trained != 6 || held != 0 {
		t.Errorf("Seen = %d, %d, %v, want 6, 0", trained, held, err)
	}
}

// A run that cannot be written to is not calibrated, and nothing is predicted for it.
func TestWritableFirst(t *testing.T) {
	train, validation, err := squares(t, 60, 3, 1).Split(40)
	must(t, err)
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 4, Batch: 10, Samples: 2}
	run := fit(t, spec, trainOn(train))
	observed := false
	run = run.With(bayes.WithObserver(func(bayes.Event) { observed = true }))
	held, err := lock.Take(run.Dir())
	must(t, err)
	for name, err := range map[string]error{
		"Calibrate": run.Calibrate(context.Background(), validation), "FitDetector": run.FitDetector(context.Background(), train),
		"CheckWritable": run.CheckWritable(),
	} {
		if !errors.As(err, new(*bayes.LockedError)) || observed {
			t.Errorf("%s: the error is %v, want a LockedError; predicted: %v", name, err, observed)
		}
	}
	must(t, held.Release())
	must(t, run.CheckWritable())
}

// The list names the images that a stopped run is trained on, and is the same when it is resumed.
func TestSplitsOfAStoppedRun(t *testing.T) {
	train, validation, err := squares(t, 60, 3, 1).Split(40)
	must(t, err)
	data := &datasets.Splits{Train: train, Validation: validation}
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Epochs: 6, Batch: 10, Samples: 2}
	whole := wantImages(t, fit(t, spec, data), map[string]int{"train": 40, "validation": 20})
	ctx, stop := stopAt(5)
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := bayes.Fit(ctx, spec, data, dir, stop); !errors.As(err, new(*bayes.UnfinishedError)) {
		t.Fatal(err)
	}
	run, err := bayes.Open(dir)
	must(t, err)
	for _, image := range wantImages(t, run, map[string]int{"train": 40, "validation": 20}) {
		if image.Prediction != "" {
			t.Errorf("predicted before the end: %+v", image)
		}
	}
	run, err = bayes.Resume(context.Background(), dir, data)
	must(t, err)
	if images := wantImages(t, run, map[string]int{"train": 40, "validation": 20}); !slices.Equal(images, whole) {
		t.Error("the list differs from that of a run that was not stopped")
	}
}

// tracks are frames of objects of three classes: the frames of a track are nearly the same, and
// tracks of a class have little in common.
func tracks(t *testing.T, name string, seed uint64, count, frames int) *datasets.Dataset {
	t.Helper()
	const size, classes = 36, 3
	r := rand.New(rand.NewPCG(seed, 0))
	var pixels []byte
	var labels []int32
	var groups []string
	for track := range count {
		class := track % classes
		var look [size]float64
		for i := range look {
			look[i] = 128 + 40*r.NormFloat64()
			if i%classes == class {
				look[i] += 22
			}
		}
		for range frames {
			for _, v := range look {
				pixels = append(pixels, byte(max(0, min(255, v+3*r.NormFloat64()))))
			}
			labels, groups = append(labels, int32(class)), append(groups, fmt.Sprint(name, track))
		}
	}
	d, err := datasets.New(name, pixels, labels, 1, 6, 6, nil)
	must(t, err)
	d.Groups = groups
	return d
}

// Prediction sets cover new tracks as promised if the calibration images are drawn by track, and do
// not if frames of the same tracks are trained on.
func TestCoverageByGroup(t *testing.T) {
	testenv.NeedsAll(t, "24 trainings")
	const level, repetitions = 0.95, 12
	covered := func(all, fresh *datasets.Dataset) float64 {
		train, validation, err := all.Stratified(0.4, 1)
		must(t, err)
		spec := bayes.Spec{Network: "mlp-32", Method: optimizers.Momentum{Decay: 0.9}, Schedule: optimizers.Constant{Rate: 0.02}, Epochs: 30, Batch: 50}
		run := fit(t, spec, &datasets.Splits{Train: train, Validation: validation})
		answers, err := run.With(bayes.WithLevel(level), bayes.WithSetRule(evaluate.SetRule{AllowEmpty: true})).Predict(context.Background(), fresh)
		must(t, err)
		hits := 0
		for i, answer := range answers {
			if slices.Contains(answer.PredictionSet, fresh.ClassNames[fresh.Labels[i]]) {
				hits++
			}
		}
		return float64(hits) / float64(len(answers))
	}
	var byTrack, byFrame float64
	for seed := range uint64(repetitions) {
		all, fresh := tracks(t, "tracks", seed, 360, 6), tracks(t, "fresh", 100+seed, 600, 2)
		byTrack += covered(all, fresh) / repetitions
		all.Groups = nil
		byFrame += covered(all, fresh) / repetitions
	}
	t.Logf("coverage %.3f by track, %.3f by frame", byTrack, byFrame)
	// The means of 12 draws of 144 calibration tracks have a standard deviation of 0.006.
	if byTrack < level-0.02 || byTrack > level+0.02 || byFrame > level-0.1 {
		t.Errorf("coverage %.3f by track, %.3f by frame, want %.2f and at most %.2f", byTrack, byFrame, level, level-0.1)
	}
}
