package export

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// text returns the text of the model card.
func (c *card) text(ctx context.Context) (string, error) {
	d, err := c.diagnostics(ctx)
	if err != nil {
		return "", err
	}
	introduction, err := c.introduction(d)
	if err != nil {
		return "", err
	}
	method, err := c.method()
	if err != nil {
		return "", err
	}
	scores, err := c.scores()
	if err != nil {
		return "", err
	}
	limits, err := c.limits()
	if err != nil {
		return "", err
	}
	return introduction + c.trainingData() + method + c.convergence(d) + scores + limits, nil
}

// diagnostics returns the diagnostics of the run, or nil if it has none, or is not of a sampler. If
// they lack predictions, as for gathered runs, these are measured on the test images.
func (c *card) diagnostics(ctx context.Context) (*diagnostics.Report, error) {
	if familyOf(c.m.Spec) != sampler {
		return nil, nil
	}
	d, err := c.run.Diagnostics()
	if os.IsNotExist(errors.Cause(err)) {
		return nil, nil
	}
	if err == nil && d.Predicted == nil && c.test.images != nil {
		d.Predicted, err = c.run.Mixing(ctx, &datasets.Splits{Test: c.test.images})
	}
	return d, err
}

// section builds a section of Markdown.
type section struct{ strings.Builder }

// say adds a line.
func (s *section) say(format string, arguments ...any) { fmt.Fprintf(s, format+"\n", arguments...) }

// introduction returns the title, what the run is, and the table of files.
func (c *card) introduction(d *diagnostics.Report) (string, error) {
	var s section
	pretrained, err := c.pretrained()
	if err != nil {
		return "", err
	}
	s.say("# %s on %s\n", c.m.NetworkName(), markdown(c.m.Data.Name))
	s.say("%s\n", c.description(d))
	if pretrained != "" {
		s.say("%s\n", pretrained)
	}
	model, weights, predictions := "the averaged network", "the samples", "predictions for the test images by sample"
	switch family := familyOf(c.m.Spec); {
	case c.test.draws.Len() == 1 && c.test.passes == 1:
		model, weights, predictions = "the network", "its weights", "its predictions for the test images"
	case family == dropout:
		weights, predictions = "the weights", "predictions for the test images by pass"
	case family == optimizer || family == ensemble:
		weights, predictions = "the weights of the networks", "predictions for the test images by network"
	}
	if k, n := c.o.Samples, c.test.draws.Len(); k > 0 && k < n {
		model += fmt.Sprintf(" of %d of the %d samples", k, n)
	}
	drawn := weights
	if c.test.images != nil {
		drawn += " and their predictions for the test images"
	}
	s.say("| file | content |\n|---|---|")
	for _, file := range []struct{ name, content string }{
		{cardONNX, model + ", with its uncertainties, for onnxruntime"},
		{cardArviZ, drawn + ", for ArviZ and xarray"},
		{cardTorch, weights + ", with PyTorch's names and layouts"},
		{cardNPZ, predictions + ", for NumPy"},
	} {
		if c.written[file.name] {
			s.say("| `%s` | %s |", file.name, file.content)
		}
	}
	s.say("| `%s/` | the course of the training, for TensorBoard |\n", cardTensorBoard)
	return s.String(), nil
}

func (c *card) trainingData() string {
	var s section
	d := c.m.Data
	s.say("## Training data\n")
	s.say("%s: %d images of %dx%d with %d channels. The %d classes are %s.\n",
		markdown(d.Name), d.Size, d.Height, d.Width, d.Channels, d.Classes(), classList(d.ClassNames))
	if d.Crop {
		s.say("Other images are cropped to the aspect ratio of %d:%d in the middle, and scaled by a bicubic filter.\n", d.Width, d.Height)
	} else {
		s.say("Images of other sizes are stretched to this size by a bicubic filter.\n")
	}
	if d.Bits > 0 {
		s.say("Images with 16 bits per channel have %d significant bits: values of 0 to %d become bytes of 0 to 255.\n", d.Bits, 1<<d.Bits-1)
	}
	if d.Content != "" {
		s.say("The SHA-256 of images and labels is `%s`.\n", d.Content)
	}
	for _, remark := range d.Remarks {
		s.say("- %s", markdown(sentence(remark, d.Name)))
	}
	return s.String() + "\n"
}

// method returns the section with the settings of the run.
func (c *card) method() (string, error) {
	var s section
	digest, err := c.test.draws.Digest()
	if err != nil {
		return "", err
	}
	settings, err := settingsOf(c.run, perChain(c.test.draws))
	if err != nil {
		return "", err
	}
	s.say("## Method\n")
	s.say("| setting | value |\n|---|---|")
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if settings[name] == "" || name == "model" {
			continue
		}
		title := name
		if name == samplesSetting {
			title = "samples of each chain"
		}
		s.say("| %s | %s |", title, markdown(settings[name]))
	}
	revision, _, _ := strings.Cut(c.m.Revision, ":") // an unknown one has advice after it
	s.say("\n%d parameters. The build is %s. The digest of the run is `%s`.\n", c.m.Parameters, markdown(revision), digest)
	return s.String(), nil
}

// convergence returns the section about the chains of a sampler; "" for other methods.
func (c *card) convergence(d *diagnostics.Report) string {
	if familyOf(c.m.Spec) != sampler {
		return ""
	}
	var s section
	s.say("## Convergence\n")
	if d == nil {
		s.say("The run has no diagnostics of its chains.\n")
		return s.String()
	}
	requested := c.m.Spec.NoiseTemperature()
	if verdict := d.Verdict(requested).Text; verdict != "" {
		s.say("The chains are %s.\n", markdown(verdict))
	} else {
		s.say("Whether the chains are in equilibrium was not measured.\n")
	}
	s.say("| measured | value |\n|---|---|")
	if p := d.Predicted; p != nil {
		s.say("| split R-hat of predictions, 95th percentile over %d held-out images | %s |", p.Images, report.OrDash("%.3f", p.RHat))
		s.say("| effective sample size of predictions, median over the images | %s |", report.OrDash("%.0f", p.BulkESS))
	} else {
		s.say("| split R-hat of predictions | not measured |")
	}
	for _, t := range []struct {
		by string
		at *diagnostics.Measured
	}{{"curvature", d.Predictions}, {"determination", d.Determination}} {
		value := "not measured"
		if t.at != nil {
			value = t.at.String()
		}
		s.say("| temperature of predictions by %s, of %g requested | %s |", t.by, requested, value)
	}
	if augment := c.m.Spec.Augment; augment != nil && *augment != (bayes.Augment{}) {
		s.say("\nImages were changed at random in training (%v): temperatures are not for the posterior given the images.", augment)
	}
	s.say("")
	return s.String()
}

// scores returns the section of scores on the test images and, for a distilled run, of its
// teacher's.
func (c *card) scores() (string, error) {
	fidelity, err := c.fidelity()
	p := c.test
	if err != nil || p.images == nil {
		return fidelity, err
	}
	var s section
	calibration, err := p.draws.Calibration()
	if err != nil {
		return "", err
	}
	assessment, err := evaluate.Assess(evaluate.Case{In: p.average, Calibration: calibration})
	if err != nil {
		return "", err
	}
	s.say("## Scores\n")
	s.say("On %d test images of %s, with 95 %% intervals for the choice of these images:\n", p.images.Len(), markdown(p.images.Name))
	s.say("| score | value | interval |\n|---|---|---|")
	for _, v := range p.scores(c.answers, c.m.Data.ClassNames, c.run.Level()) {
		interval := "-"
		if !math.IsNaN(v.low) {
			interval = fmt.Sprintf("%.4f to %.4f", v.low, v.high)
		}
		s.say("| %s | %.4f | %s |", v.title, v.value, interval)
	}
	s.say("| expected calibration error (ECE) of the probabilities | %.4f | |", assessment.Values["ece"])
	if calibration != nil {
		s.say("| negative log-likelihood of the probabilities scaled by the calibration, nats | %.4f | |", assessment.Values["nllScaled"])
		s.say("| expected calibration error of the scaled probabilities | %.4f | |", assessment.Values["eceScaled"])
	}
	s.say("")
	for _, remark := range p.images.Remarks {
		if !slices.Contains(c.m.Data.Remarks, remark) {
			s.say("- %s\n", markdown(remark))
		}
	}
	return s.String() + fidelity, nil
}

// fidelity returns the section that compares a distilled run with its teacher; "" for other runs.
func (c *card) fidelity() (string, error) {
	if c.m.Teacher == nil {
		return "", nil
	}
	var s section
	s.say("## Fidelity\n")
	f, err := c.run.Fidelity()
	if os.IsNotExist(errors.Cause(err)) {
		s.say("The run was not compared with its teacher.\n")
		return s.String(), nil
	}
	if err != nil {
		return "", err
	}
	s.say("Compared with its teacher %s.\n", markdown(f.String()))
	s.say("| score | teacher | distilled |\n|---|---|---|")
	for _, row := range f.Rows() {
		s.say("| %s | %s | %s |", row.Title, row.Teacher, row.Student)
	}
	s.say("")
	return s.String(), nil
}

// limits returns the section about the limits of use.
func (c *card) limits() (string, error) {
	var s section
	s.say("## Limits of use\n")
	s.say("- The network assigns one of its classes to any image, whether or not it shows one of them.")
	if c.test.images == nil {
		s.say("- Probabilities are not promised to be calibrated.")
	} else {
		s.say("- Probabilities are not promised to be calibrated: the table of scores has their error on the test images.")
	}
	calibration, err := c.test.draws.Calibration()
	if err != nil {
		return "", err
	}
	hasSets := calibration != nil && calibration.Supports(c.run.Level())
	decides := calibration != nil && calibration.Decides(c.run.InDistributionRate())
	if hasSets {
		each := "not for each class or one image"
		if c.o.Sets.PerClass {
			each = "and over the images of each class that has enough of them, not for one image"
		}
		s.say("- Prediction sets contain the true class of at least %g %% of images that are exchangeable with the calibration images:", 100*c.run.Level())
		s.say("  on average over images, %s.", each)
	}
	if decides {
		s.say("- At least %g %% of images that are exchangeable with the calibration images are accepted as in distribution, on average.",
			100*c.run.InDistributionRate())
	}
	if hasSets || decides {
		s.say("- The calibration images are %d images of %s. Images from the same source are exchangeable with them: the same cameras, the same mixture",
			calibration.Examples, markdown(calibration.Data))
		s.say("  of classes. Nothing is promised for other images.")
	}
	if !hasSets {
		s.say("- There are no prediction sets, since the run is not calibrated for them.")
	}
	switch {
	case !decides:
		s.say("- Nothing tells images out of distribution from others, since the run is not calibrated for it.")
	case calibration.SelfTest != nil:
		s.say("- Images out of distribution may be accepted as in distribution. Of strange images made for a test, these were:\n")
		s.say("  | images | accepted | of |\n  |---|---|---|")
		for _, kind := range calibration.SelfTest.Kinds {
			s.say("  | %s | %d | %d |", markdown(kind.Kind), kind.Accepted, kind.Images)
		}
		s.say("")
	}
	s.say("- The network was not tested against images made to deceive it.")
	for _, remark := range c.remarks {
		s.say("- %s", markdown(sentence(remark, c.m.Data.Name)))
	}
	return s.String(), nil
}

// sentence returns a remark as a sentence. A remark that begins with the name of the data keeps it.
func sentence(remark, data string) string {
	if rest, named := strings.CutPrefix(remark, data); !named || rest == "" || !strings.Contains(" :,", rest[:1]) {
		first, size := utf8.DecodeRuneInString(remark)
		remark = string(unicode.ToUpper(first)) + remark[size:]
	}
	return remark + "."
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
