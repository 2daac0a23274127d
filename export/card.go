package export

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
)

// Card writes a new directory with a run in all formats and a README.md, a model card: training
// data, method, scores on test images with 95 % intervals, and limits of use. It returns remarks.
// A distilled run has no draws, and therefore no groups for ArviZ. test must have labels. at is
// the time of TensorBoard's events.
func Card(ctx context.Context, run *bayes.Run, test *datasets.Dataset, dir string, o ONNXOptions, at time.Time) (remarks []string, err error) {
	p, err := predict(ctx, run, test)
	if err != nil {
		return nil, err
	}
	if p.average.Labels == nil {
		return nil, invalid("card: %s has no labels, with which the run is scored", test.Name)
	}
	answers, err := run.Answers(p.average, test.Files)
	if err != nil {
		return nil, err
	}
	err = intoNew(dir, func(dir string) error {
		add := func(more []string, err error) error {
			remarks = append(remarks, more...)
			return err
		}
		if err := add(ONNX(ctx, run, filepath.Join(dir, "model.onnx"), o)); err != nil {
			return err
		}
		if run.Manifest().Teacher == nil {
			if err := add(ArviZ(ctx, run, test, filepath.Join(dir, "posterior.zarr"))); err != nil {
				return err
			}
		}
		if err := Torch(run, filepath.Join(dir, "posterior.safetensors")); err != nil {
			return err
		}
		if err := NPZ(ctx, run, test, filepath.Join(dir, "predictions.npz")); err != nil {
			return err
		}
		if err := TensorBoard(run, filepath.Join(dir, "tensorboard"), at); err != nil {
			return err
		}
		text, err := p.card(run, answers, remarks)
		if err != nil {
			return err
		}
		return errors.Wrap(os.WriteFile(filepath.Join(dir, "README.md"), []byte(text), 0o644), "export: card")
	})
	return remarks, err
}

// card returns the text of a model card.
func (p *predicted) card(run *bayes.Run, answers []bayes.Answer, remarks []string) (string, error) {
	m := run.Manifest()
	digest, err := p.draws.Digest()
	if err != nil {
		return "", err
	}
	d := m.Data
	var text strings.Builder
	say := func(format string, arguments ...any) { fmt.Fprintf(&text, format+"\n", arguments...) }
	say("# %s on %s\n", m.Spec.NetworkName(), markdown(d.Name))
	if m.Teacher == nil {
		say("A Bayesian neural network that classifies images: the average of %d samples of its weights, drawn by Pollen.\n", p.draws.Len())
	} else {
		say("A neural network that classifies images, distilled by Pollen from a Bayesian one (%s by %s): it predicts what the average of %d samples does.\n",
			markdown(m.Teacher.Network), markdown(m.Teacher.Method), m.Teacher.Samples)
	}
	say("| file | content |\n|---|---|")
	say("| `model.onnx` | the averaged network, with its uncertainties, for onnxruntime |")
	if m.Teacher == nil {
		say("| `posterior.zarr` | the samples and their predictions for the test images, for ArviZ and xarray |")
	}
	say("| `posterior.safetensors` | the samples, with PyTorch's names and layouts |")
	say("| `predictions.npz` | predictions for the test images by sample, for NumPy |")
	say("| `tensorboard/` | the course of the training, for TensorBoard |\n")
	say("## Training data\n")
	say("%s: %d images of %dx%d with %d channels. The %d classes are %s.\n",
		markdown(d.Name), d.Size, d.Height, d.Width, d.Channels, d.Classes(), classList(d.ClassNames))
	if d.Crop {
		say("Other images are cropped to the aspect ratio of %d:%d in the middle, and scaled by a bicubic filter.\n", d.Width, d.Height)
	} else {
		say("Images of other sizes are stretched to this size by a bicubic filter.\n")
	}
	if d.Content != "" {
		say("The SHA-256 of images and labels is `%s`.\n", d.Content)
	}
	for _, remark := range d.Remarks {
		say("- %s", markdown(remark))
	}
	say("\n## Method\n")
	settings := m.Spec.Texts()
	say("| setting | value |\n|---|---|")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] != "" && name != "model" {
			say("| %s | %s |", name, markdown(settings[name]))
		}
	}
	say("\n%d parameters. The build is %s. The digest of the run is `%s`.\n", m.Parameters, markdown(m.Revision), digest)
	say("## Scores\n")
	say("On %d test images of %s, with 95 %% intervals for the choice of these images:\n", p.images.Len(), markdown(p.images.Name))
	say("| score | value | interval |\n|---|---|---|")
	for _, s := range p.scores(answers, d.ClassNames, run.Level()) {
		say("| %s | %.4f | %.4f to %.4f |", s.title, s.value, s.low, s.high)
	}
	say("")
	return text.String() + p.limits(run, answers, remarks), nil
}

// limits returns the section about the limits of use.
func (p *predicted) limits(run *bayes.Run, answers []bayes.Answer, remarks []string) string {
	var text strings.Builder
	say := func(format string, arguments ...any) { fmt.Fprintf(&text, format+"\n", arguments...) }
	say("## Limits of use\n")
	say("- The network assigns one of its classes to any image, whether or not it shows one of them.")
	say("- Probabilities and prediction sets hold for images like those of training: the same cameras, the same mixture of classes. They hold on")
	say("  average over images, not for one class or one image.")
	if answers[0].PredictionSet == nil {
		say("- There are no prediction sets, since the run is not calibrated for them.")
	}
	c, err := run.Calibration()
	switch {
	case answers[0].InDistribution == nil:
		say("- Nothing tells images out of distribution from others, since the run is not calibrated for it.")
	case err == nil && c.SelfTest != nil:
		say("- Images out of distribution are recognized in part only. Of strange images made for a test, these were accepted:\n")
		say("  | images | accepted | of |\n  |---|---|---|")
		for _, kind := range c.SelfTest.Kinds {
			say("  | %s | %d | %d |", markdown(kind.Kind), kind.Accepted, kind.Images)
		}
		say("")
	}
	say("- The network was not tested against images made to deceive it.")
	for _, remark := range remarks {
		say("- %s", markdown(remark))
	}
	return text.String()
}

// score is a score with a 95 % interval.
type score struct {
	title            string
	value, low, high float64
}

// normal95 is the 97.5th percentile of the normal distribution.
const normal95 = 1.959964

// scores returns the scores of the averaged predictions.
func (p *predicted) scores(answers []bayes.Answer, classes []string, level float64) []score {
	_, n, k := p.size()
	correct, covered, inside := 0, 0, 0
	likelihood, brier, size := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, a := range answers {
		label := int(p.average.Labels[i])
		row := p.average.Probabilities[i*k : (i+1)*k]
		if a.Index == label {
			correct++
		}
		likelihood[i] = -math.Log(max(row[label], math.SmallestNonzeroFloat64))
		for class, v := range row {
			if class == label {
				v--
			}
			brier[i] += v * v
		}
		if size[i] = float64(len(a.PredictionSet)); slices.Contains(a.PredictionSet, classes[label]) {
			covered++
		}
		if a.InDistribution != nil && *a.InDistribution {
			inside++
		}
	}
	all := []score{fraction("accuracy", correct, n), mean("negative log-likelihood, nats", likelihood), mean("Brier score", brier)}
	if answers[0].PredictionSet != nil {
		all = append(all, fraction(fmt.Sprintf("coverage of %g %% prediction sets", 100*level), covered, n), mean("classes in a prediction set", size))
	}
	if answers[0].InDistribution != nil {
		all = append(all, fraction("accepted as in distribution", inside, n))
	}
	return all
}

// fraction is a fraction with its interval.
func fraction(title string, count, n int) score {
	share := float64(count) / float64(n)
	low, high := evaluate.FractionInterval(share, n)
	return score{title, share, low, high}
}

// mean is a mean with the interval of its standard error.
func mean(title string, values []float64) score {
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	n := float64(len(values))
	m := sum / n
	for _, v := range values {
		squares += (v - m) * (v - m)
	}
	half := normal95 * math.Sqrt(squares/max(1, n-1)/n)
	return score{title, m, m - half, m + half}
}

// markdown escapes text for a table of Markdown.
func markdown(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[").Replace(text)
}

// classList lists names, at most maxListed of them.
func classList(names []string) string {
	const maxListed = 50
	listed := strings.Join(names[:min(len(names), maxListed)], ", ")
	if more := len(names) - maxListed; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return markdown(listed)
}
