package runtest

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// uneven is a run whose samples have weights that differ.
func uneven(t *testing.T, options ...bayes.Option) *bayes.Run {
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 10, BurnIn: new(2), Samples: 5, Chains: 2,
		Schedule: optimizers.Cosine{First: 0.3, Last: 0.01}}
	return fit(t, spec, &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 60, 4, 2)}, options...)
}

// A sample's weight is the step size that it was drawn with: the rate of the step before it divided
// by the number of examples.
func TestWeights(t *testing.T) {
	run := uneven(t)
	files, err := run.Samples()
	must(t, err)
	const steps = 50
	for i, file := range files {
		s, err := samples.ReadSample(file)
		must(t, err)
		step := 10 + (i%5+1)*8
		if s.Step != step || s.Chain != i/5 {
			t.Fatalf("%s is of chain %d at step %d, want %d at %d", file, s.Chain, s.Step, i/5, step)
		}
		rate := 0.01 + (0.3-0.01)*(1+math.Cos(math.Pi*float64(step-1)/(steps-1)))/2
		if want := rate / 100; math.Abs(s.Weight-want) > 1e-12 {
			t.Errorf("%s has the weight %v, want %v", file, s.Weight, want)
		}
	}
	for _, k := range kinds(t) {
		if !slices.Contains([]string{"optimizer", "exact", "ensemble", "dropout", "swag", "laplace", "backprop"}, k.name) {
			continue
		}
		files, err := fit(t, k.spec, trainOn(squares(t, 100, 4, 1))).Samples()
		must(t, err)
		for _, file := range files {
			if s, err := samples.ReadSample(file); err != nil || s.Weight != 1 {
				t.Errorf("%s: %s has the weight %v (%v), want 1", k.name, file, s.Weight, err)
			}
		}
	}
}

// A schedule that ends at 0 would give a sample the weight 0.
func TestSampleWithoutWeight(t *testing.T) {
	data := squares(t, 100, 4, 1)
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 10, BurnIn: new(2), Samples: 5, Schedule: optimizers.Cosine{First: 0.3}}
	_, err := bayes.Fit(context.Background(), spec, trainOn(data), t.TempDir())
	wantInvalid(t, "a sample at rate 0", err, "schedule cosine:0.3,0 is 0 at step 49, after which a sample is drawn: it would have no weight")
	spec.Method = bayes.SWAG{Rank: 2}
	fit(t, spec, trainOn(data))
	spec.Method, spec.Samples = nil, 6 // the last of which is drawn after 46 steps
	fit(t, spec, trainOn(data))
}

// Predictions are the weighted average of the samples; uncertainties describe the average.
func TestPredictionsAreWeighted(t *testing.T) {
	run, data := uneven(t), squares(t, 60, 4, 3)
	const classes = 4
	var weights []float64
	sum, plain := make([]float64, 60*classes), make([]float64, 60*classes)
	entropies, total := make([]float64, 60), 0.0
	p, err := run.Predictions(context.Background(), data, func(probabilities []float32, weight float64) error {
		weights, total = append(weights, weight), total+weight
		for i, v := range probabilities {
			sum[i] += weight * float64(v)
			plain[i] += float64(v) / 10
			if v > 0 {
				entropies[i/classes] -= weight * float64(v) * math.Log(float64(v))
			}
		}
		return nil
	})
	must(t, err)
	files, err := run.Samples()
	must(t, err)
	for i, file := range files {
		s, err := samples.ReadSample(file)
		must(t, err)
		if weights[i] != s.Weight {
			t.Errorf("prediction %d has the weight %v, want that of %s, %v", i, weights[i], file, s.Weight)
		}
	}
	const tolerance = 1e-6 // float32 probabilities, each row divided by its sum
	matters := 0.0
	for i, v := range p.Probabilities {
		if want := sum[i] / total; math.Abs(v-want) > tolerance {
			t.Errorf("probability %d is %v, want %v", i, v, want)
		}
		matters = max(matters, math.Abs(v-plain[i]))
	}
	if matters < 1e-3 {
		t.Errorf("weights change probabilities by %v at most: this test would not see them", matters)
	}
	for i := range data.Len() {
		row := p.Probabilities[i*classes : (i+1)*classes]
		entropy := 0.0
		for _, v := range row {
			entropy -= v * math.Log(v)
		}
		if math.Abs(p.Entropy[i]-entropy) > 1e-9 || math.Abs(p.Confidence[i]-slices.Max(row)) > 1e-12 ||
			math.Abs(p.MutualInformation[i]-(entropy-entropies[i]/total)) > 1e-5 {
			t.Errorf("image %d: entropy %v, confidence %v, mutual information %v of %v", i, p.Entropy[i], p.Confidence[i], p.MutualInformation[i], row)
		}
	}
	if p.Samples != 10 || p.Name != "squares" || !slices.Equal(p.Labels, data.Labels) {
		t.Errorf("%d samples on %s", p.Samples, p.Name)
	}
}

// Answers agree with the predictions and the calibration of each image.
func TestPredict(t *testing.T) {
	run, data := uneven(t), squares(t, 60, 4, 3)
	data.Files = make([]string, 60)
	for i := range data.Files {
		data.Files[i] = string(rune('a' + i%26))
	}
	p, err := run.Predictions(context.Background(), data, nil)
	must(t, err)
	c, err := run.Calibration()
	must(t, err)
	if c.Examples != 60 || c.Samples != 10 || c.Classes != 4 {
		t.Errorf("calibration %+v", c)
	}
	if math.Abs(c.Exponent-1) < 0.01 {
		t.Errorf("an exponent of %v changes little", c.Exponent)
	}
	scaled, err := c.Scaled(p)
	must(t, err)
	for level, shown := range map[float64]*evaluate.Predictions{0.9: scaled, 0.6: p} {
		options := []bayes.Option{bayes.WithLevel(level), bayes.WithInDistributionRate(level / 2)}
		if shown == p {
			options = append(options, bayes.WithUnscaled())
		}
		answers, err := run.With(options...).Predict(context.Background(), data)
		must(t, err)
		least, err := c.ProbabilityThreshold(level)
		must(t, err)
		most, err := c.NonconformityThreshold(level / 2)
		must(t, err)
		for i, a := range answers {
			row, own := p.Probabilities[i*4:i*4+4], shown.Probabilities[i*4:i*4+4]
			if a.Index < 0 || row[a.Index] != slices.Max(row) || a.Class != data.ClassNames[a.Index] || a.Confidence != own[a.Index] ||
				!slices.Equal(a.Probabilities, own) || a.Entropy != p.Entropy[i] || a.MutualInformation != p.MutualInformation[i] || a.File != data.Files[i] {
				t.Errorf("image %d: %+v, want what the predictions %v say", i, a, row)
			}
			var set []string
			for class, v := range row {
				if v >= least {
					set = append(set, data.ClassNames[class])
				}
			}
			if set == nil {
				set = []string{a.Class}
			}
			sorted := slices.Sorted(slices.Values(a.PredictionSet))
			if !slices.Equal(sorted, set) || len(set) > 0 && a.PredictionSet[0] != a.Class {
				t.Errorf("image %d: the set %v of %v, want %v", i, a.PredictionSet, row, set)
			}
			if score := p.Nonconformity[i]; !a.Calibrated || *a.InDistribution != (score <= most) || *a.PValue != c.PValue(score) {
				t.Errorf("image %d: in distribution %v, p-value %v with the score %v, want at most %v", i, *a.InDistribution, *a.PValue, score, most)
			}
		}
	}
	for _, option := range []bayes.Option{
		bayes.WithLevel(0), bayes.WithLevel(1), bayes.WithInDistributionRate(math.NaN()), bayes.WithInDistributionRate(-1),
	} {
		other := run.With(option)
		_, predicting := other.Predict(context.Background(), data)
		_, answering := other.Answers(&evaluate.Predictions{}, nil)
		_, loading := other.Predictor(1)
		_, opening := bayes.Open(run.Dir(), option)
		for what, err := range map[string]error{"predict": predicting, "answers": answering, "predictor": loading, "open": opening} {
			wantInvalid(t, what, err, "must be between 0 and 1")
		}
	}
	// Each guarantee has its own level, which 60 examples may or may not support.
	for _, levels := range [][2]float64{{0.9, 0.999}, {0.999, 0.95}, {0.999, 0.999}} {
		has := func(level float64) bool { return level < 0.99 }
		watched := run.With(bayes.WithLevel(levels[0]), bayes.WithInDistributionRate(levels[1]))
		answers, err := watched.Predict(context.Background(), data)
		must(t, err)
		loaded, err := watched.Predictor(1)
		must(t, err)
		if d := loaded.Decisions(); (d.Sets != nil) != has(levels[0]) || (d.InDistributionRate > 0) != has(levels[1]) || d.Calibrated() {
			t.Errorf("%v: a Predictor gives %v and %v", levels, d.Sets, d.InDistributionRate)
		}
		must(t, loaded.Close())
		text, err := json.Marshal(answers[0])
		must(t, err)
		if a := answers[0]; a.Calibrated || (a.PredictionSet != nil) != has(levels[0]) || (a.InDistribution != nil) != has(levels[1]) ||
			strings.Contains(string(text), `"predictionSet":[`) != has(levels[0]) || strings.Contains(string(text), `"inDistribution":`) != has(levels[1]) {
			t.Errorf("%v: %s", levels, text)
		}
	}
	// A set without a class is in the JSON, too.
	if text, err := json.Marshal(bayes.Answer{PredictionSet: []string{}}); err != nil || !strings.Contains(string(text), `"predictionSet":[]`) {
		t.Errorf("empty prediction set: %s (%v)", text, err)
	}

	// A calibration with other samples does not apply.
	files, err := run.Samples()
	must(t, err)
	must(t, os.Remove(files[0]))
	_, err = run.Predict(context.Background(), data)
	wantDamaged(t, err, files[0])
	remark := ""
	run = run.With(bayes.WithoutDamaged(), bayes.WithObserver(func(e bayes.Event) { remark += e.Remark }))
	answers, err := run.Predict(context.Background(), data)
	must(t, err)
	if answers[0].Calibrated || !strings.Contains(remark, "was calibrated with 10 samples, and 9 are left") || !slices.Equal(run.LeftOut(), files[:1]) {
		t.Errorf("without a sample: %+v, remark %q, left out %v", answers[0], remark, run.LeftOut())
	}
	_, err = run.Assess(context.Background(), data, nil)
	must(t, err)
	must(t, run.Calibrate(context.Background(), squares(t, 60, 4, 4)))
	answers, err = run.Predict(context.Background(), data)
	must(t, err)
	if answers[0].PredictionSet == nil || answers[0].InDistribution != nil {
		t.Errorf("after Calibrate, with a detector of other samples: %+v", answers[0])
	}
	must(t, run.FitDetector(context.Background(), data))
	must(t, run.Calibrate(context.Background(), squares(t, 60, 4, 4)))
	answers, err = run.Predict(context.Background(), data)
	must(t, err)
	if !answers[0].Calibrated {
		t.Error("not calibrated after FitDetector and Calibrate")
	}
}

// Without a calibration there are answers, without a set.
func TestPredictUncalibrated(t *testing.T) {
	data := squares(t, 100, 4, 1)
	run := fit(t, quick(), trainOn(data))
	answers, err := run.Predict(context.Background(), data)
	must(t, err)
	if len(answers) != 100 || answers[0].Calibrated || answers[0].PredictionSet != nil || answers[0].InDistribution != nil || answers[0].Class == "" {
		t.Errorf("%d answers such as %+v", len(answers), answers[0])
	}
	a, err := run.Assess(context.Background(), data, nil)
	must(t, err)
	if _, ok := a.Values["setCoverage"]; ok || a.Calibration != nil {
		t.Errorf("scores %v of a run that was not calibrated", a.Values)
	}
	if _, err := run.Calibration(); !os.IsNotExist(errors.Cause(err)) {
		t.Errorf("error %v, want that there is none", err)
	}
	wantInvalid(t, "fewer names", bayes.WriteCSV(io.Discard, answers, data.ClassNames[1:]), "answer 0 has 4 probabilities, must have one for each of 3 classes")
	if mixing, err := run.Mixing(context.Background(), nil); mixing != nil || err != nil {
		t.Errorf("mixing of no data is %v (%v)", mixing, err)
	}
	unlabelled := *data
	unlabelled.Labels = nil
	if answers, err = run.Predict(context.Background(), &unlabelled); err != nil || len(answers) != 100 {
		t.Errorf("%d answers for images without labels (%v)", len(answers), err)
	}
	_, err = run.Assess(context.Background(), &unlabelled, nil)
	wantInvalid(t, "no labels", err, "squares has no labels")
	wantInvalid(t, "no labels", run.Calibrate(context.Background(), &unlabelled), "squares has no labels")
}

// Other shapes and classes than those trained on.
func TestPredictMismatches(t *testing.T) {
	data := squares(t, 100, 4, 1)
	run := fit(t, quick(), trainOn(data))
	turned, fewer, more := *data, squares(t, 60, 3, 1), squares(t, 60, 5, 1)
	turned.Height, turned.Width = 6, 24
	ctx := context.Background()
	_, err := run.Predict(ctx, &turned)
	wantInvalid(t, "a shape", err, "squares has images of 1x6x24, must have the 1x12x12 of squares, the training images of "+run.Dir())
	_, err = run.Assess(ctx, data, &turned)
	wantInvalid(t, "another kind's shape", err, "images of 1x6x24")
	_, err = run.Gradient(ctx, &turned)
	wantInvalid(t, "a gradient's shape", err, "images of 1x6x24")
	_, err = run.Assess(ctx, more, nil)
	wantInvalid(t, "classes", err, `squares has a class "4", but the classes of `+run.Dir()+" are 0, 1, 2, 3")
	wantInvalid(t, "classes", run.Calibrate(ctx, more), `squares has a class "4"`)
	_, err = run.Gradient(ctx, more)
	wantInvalid(t, "classes", err, `squares has a class "4"`)
	if _, err := run.Assess(ctx, data, more); err != nil {
		t.Errorf("another kind may have other classes: %v", err)
	}
	if answers, err := run.Predict(ctx, fewer); err != nil || len(answers) != 60 {
		t.Errorf("images of other classes are answered for: %v", err)
	}
	// Pixels are normalised by the moments of the images trained on, whatever the others' moments
	// are.
	brighter := *data
	brighter.Mean, brighter.Std = []float64{0.9}, []float64{2}
	asTrained, err := run.Predict(ctx, data)
	must(t, err)
	if answers, err := run.Predict(ctx, &brighter); err != nil || !slices.Equal(answers[0].Probabilities, asTrained[0].Probabilities) {
		t.Errorf("data with other moments give %v (%v), want %v", answers[0].Probabilities, err, asTrained[0].Probabilities)
	}

	// Classes are matched by name: in another order, or fewer of them, the scores are the same.
	want, err := run.Assess(ctx, fewer, nil)
	must(t, err)
	swapped := *fewer
	swapped.ClassNames, swapped.Labels = []string{"2", "0", "1"}, nil
	for _, label := range fewer.Labels {
		swapped.Labels = append(swapped.Labels, []int32{1, 2, 0}[label])
	}
	got, err := run.Assess(ctx, &swapped, nil)
	if err != nil || got.String() != want.String() || want.Values["accuracy"] < 0.3 {
		t.Errorf("scores %v of classes in another order (%v), want %v", got, err, want)
	}
	empty := *data
	empty.Images, empty.Labels = nil, nil
	for what, none := range map[string]*datasets.Dataset{"nil": nil, "no images": &empty} {
		_, predicting := run.Predict(ctx, none)
		_, assessing := run.Assess(ctx, none, nil)
		_, gradient := run.Gradient(ctx, none)
		for _, err := range []error{predicting, assessing, gradient, run.Calibrate(ctx, none)} {
			wantInvalid(t, what, err, "pollen: ")
		}
	}
}

// Scores use the predictions on both kinds, by the entropy of the average, with the other kind as
// the positive class.
func TestAssess(t *testing.T) {
	run := uneven(t)
	test, other := squares(t, 60, 4, 3), squares(t, 45, 9, 5) // of whose 9 places 5 were never seen
	a, err := run.Assess(context.Background(), test, other)
	must(t, err)
	in, err := run.Predictions(context.Background(), test, nil)
	must(t, err)
	out, err := run.Predictions(context.Background(), other, nil)
	must(t, err)
	above := func(in, out []float64) float64 { // the fraction of pairs with the other kind above
		pairs := 0.0
		for _, x := range in {
			for _, y := range out {
				if y > x {
					pairs++
				} else if y == x {
					pairs += 0.5
				}
			}
		}
		return pairs / float64(len(in)*len(out))
	}
	correct, nll := 0.0, 0.0
	for i, label := range test.Labels {
		if class, _ := in.Guess(i); class == int(label) {
			correct++
		}
		nll -= math.Log(in.Probabilities[i*4+int(label)]) / 60
	}
	by := above(in.Entropy, out.Entropy)
	if byConfidence := 1 - above(in.Confidence, out.Confidence); math.Abs(by-byConfidence) < 1e-4 || math.Abs(by-0.5) < 0.05 {
		t.Errorf("AUROC %v by entropy and %v by confidence: this test would not see the difference", by, byConfidence)
	}
	for name, want := range map[string]float64{"auroc": by, "accuracy": correct / 60, "nll": nll} {
		if got, ok := a.Values[name]; !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if a.In.Name != "squares" || a.In.Len() != 60 || a.Out.Len() != 45 || a.Calibration == nil {
		t.Errorf("assessment of %s", a)
	}
	for _, s := range evaluate.Scores() {
		if _, ok := a.Values[s.Name]; !ok {
			t.Errorf("no %s", s.Name)
		}
	}
	reopened, err := bayes.Open(run.Dir())
	must(t, err)
	again, err := reopened.With(with(t, 1)).Assess(context.Background(), test, other)
	must(t, err)
	if again.String() != a.String() {
		t.Errorf("%s, and opened again %s", a, again)
	}
}

func TestAnswerInWords(t *testing.T) {
	for want, a := range map[string]bayes.Answer{
		"rose (0.61)":                       {Class: "rose", Confidence: 0.612},
		"a.png: rose (0.61) of rose, tulip": {File: "a.png", Class: "rose", Confidence: 0.61, PredictionSet: []string{"rose", "tulip"}, InDistribution: new(true)},
		"a.png: rose (0.61); empty prediction set; out of distribution": {
			File: "a.png", Class: "rose", Confidence: 0.61, PredictionSet: []string{}, InDistribution: new(false),
		},
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
