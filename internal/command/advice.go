package command

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/report"
)

// maxAdviceECE is the largest ECE of a run that is called good enough, unless a larger one may be
// chance. A run whose R-hat is above diagnostics.MixedRHat may predict well, but its samples are
// not from the posterior. The user decides what accuracy is enough.
const maxAdviceECE = 0.1

// colder is the temperature that is advised for runs that are too cautious. Heads of pretrained
// networks then have the NLL and the ECE of ensembles, see docs/pretrained.md.
const colder = 0.1

// judgement states whether a run is good enough, and what would improve it.
type judgement struct {
	verdict string
	poor    bool    // whether the verdict is "not good enough"
	remark  string  // on what would improve it, empty if the command needs none
	command string  // that would improve it, without the program; empty if there is none
	cost    float64 // of the command, relative to the run's; 0 if unknown
}

// judge judges a run by its scores on test images and its chains, and compares a fine-tuned run
// with a head on frozen features, if there is one.
func judge(run *bayes.Run, a *evaluate.Assessment, head []scoredRun, test *datasets.Dataset) (judgement, error) {
	d, err := run.Diagnostics()
	if err != nil && !os.IsNotExist(errors.Cause(err)) {
		return judgement{}, err
	}
	accuracy := a.Values["accuracy"]
	largest := float64(slices.Max(test.Counts())) / float64(test.Len()) // class, as a fraction
	low, high := evaluate.FractionInterval(accuracy, test.Len())
	right := fmt.Sprintf("right on %.1f %% of %d test images (95 %% interval %.1f to %.1f %%)", 100*accuracy, test.Len(),
		100*low, 100*high)
	rHat := math.NaN()
	if d != nil && d.Predicted != nil {
		rHat = float64(d.Predicted.RHat)
	}
	shown, ece, confidence := a.In, a.Values["ece"], a.Values["confidence"]
	if a.Calibration != nil { // answers have other probabilities
		if shown, err = a.Calibration.Scaled(a.In); err != nil {
			return judgement{}, err
		}
		ece, confidence = a.Values["eceScaled"], stat.Mean(shown.Confidence, nil)
	}
	byChance, highest, err := evaluate.CalibrationErrorByChance(shown)
	if err != nil {
		return judgement{}, err
	}
	off := fmt.Sprintf("off by %.1f points on average", 100*ece)
	if ece <= highest {
		off += fmt.Sprintf(", which may be chance: on %d images, perfect ones are off by %.1f", test.Len(), 100*byChance)
	}
	j := judgement{poor: low <= largest || ece > max(maxAdviceECE, highest)}
	switch {
	case low <= largest:
		j.verdict = fmt.Sprintf("not good enough: %s, where one class has %.1f %%", right, 100*largest)
	case j.poor:
		j.verdict = fmt.Sprintf("not good enough: %s, but its probabilities are %s", right, off)
	default:
		missed, err := worstRecalled(a.Case, test)
		if err != nil {
			return j, err
		}
		j.verdict = fmt.Sprintf("%s, and its probabilities are %s.%s %s", right, off, missed, enough(accuracy, rHat))
	}
	if low <= largest && run.Manifest().Model != nil {
		j.remark = fmt.Sprintf("The features of %s do not separate these classes: check that the file has trained weights and that --input and --size are as in "+
			"its training, see %s, or try another network", run.Manifest().Spec.Network, pretrainedPage)
		return j, nil
	}
	cautious := ece > highest && confidence < accuracy
	headAccuracy := math.NaN()
	if len(head) > 0 {
		headAccuracy = head[0].assessment.Values["accuracy"]
	}
	j.improve(run, accuracy, headAccuracy, cautious, rHat)
	return j, nil
}

// worstRecalled is a sentence on the class that a run recognises less often than others, with the
// setting that helps if the class is rare; "" if there is none.
func worstRecalled(c evaluate.Case, test *datasets.Dataset) (string, error) {
	classes, err := evaluate.ByClass(c)
	if err != nil {
		return "", err
	}
	least, ok := evaluate.WorstRecalled(classes)
	if !ok {
		return "", nil
	}
	text := fmt.Sprintf(" But it recognises only %.0f of %d images of %s", least.Recall*float64(least.Examples), least.Examples, test.ClassNames[least.Class])
	if 2*least.Examples < test.Len()/len(classes) {
		text += ", a rare class, to which --class-weights balanced gives more weight"
	}
	return text + ".", nil
}

// enough states what a run is good enough for, whose probabilities are right and which is better
// than guessing.
func enough(accuracy, rHat float64) string {
	text := "If you can live with that, it is good enough for predictions"
	if accuracy < 0.5 {
		text = "It is better than guessing, but most of its answers are wrong"
	}
	switch {
	case !(rHat > diagnostics.MixedRHat):
		return text
	case accuracy < 0.5:
		return text + fmt.Sprintf(", and its chains disagree (split R-hat %.2f)", rHat)
	}
	return text + fmt.Sprintf(", but not for what needs samples of the posterior, since its chains disagree (split R-hat %.2f)", rHat)
}

// improve sets the remark and the command that would improve a run with the given accuracy and
// split R-hat of predictions. headAccuracy is the accuracy of frozenHead, or NaN if it is unknown.
// cautious is set if the run is right more often than it expects to be, and not by chance.
func (j *judgement) improve(run *bayes.Run, accuracy, headAccuracy float64, cautious bool, rHat float64) {
	m := run.Manifest()
	into := " --folder " + config.Quoted(run.Dir()+"-2")
	switch again := "fit --config " + config.Quoted(run.Dir()+"/manifest.json"); {
	case pretrainedHelps(m, accuracy):
		known := cmp.Or(knownNetwork(run), &bayes.Spec{Network: "NETWORK.onnx"})
		j.command = "fit" + pretrainedFlags(m, *known) + into
		j.remark = fmt.Sprintf("Photographs and drawings are usually recognised far better from a pretrained network, %s, see %s", known.Network, pretrainedPage)
	case tuningHelps(m, accuracy):
		m.Spec.Freeze = pretrained.FreezeNone
		j.command = "fit" + dataFlags(m) + into
		j.remark = fmt.Sprintf("Training all weights of %s, and not only a head, may help if these images look unlike its training images, but takes longer",
			m.Spec.Network)
	case fineTuned(m) && headAccuracy >= accuracy, fineTuned(m) && math.IsNaN(headAccuracy) && accuracy < maxPretrainedAccuracy:
		j.remark = fmt.Sprintf("A head on the features that %s had before may be better, and takes a fraction of the time", m.Spec.Network)
		if !math.IsNaN(headAccuracy) {
			j.remark = fmt.Sprintf("Fine-tuning does not help with these images: a head on the features that %s had before is right on %.1f %%",
				m.Spec.Network, 100*headAccuracy)
		}
		m.Spec.Freeze = pretrained.FreezeAll
		j.command = "fit" + dataFlags(m) + into
	case bayes.IsOptimizer(m.Spec.Method) && m.Spec.Chains > 1:
		j.command, j.cost = fmt.Sprintf("%s --chains %d%s", again, 2*m.Spec.Chains, into), 2
	case bayes.IsOptimizer(m.Spec.Method):
		j.command = "fit" + dataFlags(m) + into
		j.cost = float64(bayes.RecommendedSteps(m.Spec, m.Data.Size)) / float64(m.Steps)
	case m.Teacher != nil:
		j.command, j.cost = distilAgain(m)
		j.command += into
	case rHat <= diagnostics.MixedRHat: // more steps or chains would sample the same distribution
		j.remark = "Its chains agree, so more of them, or more steps, would change little"
		t := m.Spec.Temperature
		if !cautious || t == nil || *t < 1 {
			j.remark += ". More images are what would help"
			break
		}
		j.remark += ". It is underconfident: a lower temperature makes it more certain, but no longer samples the posterior"
		j.command, j.cost = fmt.Sprintf("%s --temperature %v%s", again, colder, into), 1
	case m.Spec.Chains == 1:
		j.command, j.cost = again+" --chains 4"+into, 4
	case m.Spec.Cycles == 1: // a longer cycle is sampled at larger steps, and finds no other solutions
		j.remark = "More chains improve predictions, but do not make chains agree"
		j.command, j.cost = fmt.Sprintf("%s --chains %d%s", again, 2*m.Spec.Chains, into), 2
	default:
		j.command, j.cost = fmt.Sprintf("%s --epochs %d%s", again, 2*m.Spec.Epochs, into), 2
	}
}

// pretrainedPage is the page about pretrained networks.
const pretrainedPage = "https://github.com/pollen-ml/pollen/blob/main/docs/pretrained.md"

const (
	// maxPretrainedSize is the number of training images at which advice on pretrained networks
	// ends.
	maxPretrainedSize = 10000
	// maxPretrainedAccuracy is the accuracy at which it ends.
	maxPretrainedAccuracy = 0.9
)

// pretrainedHelps reports whether a pretrained network is the way to improve a run: its network
// learnt from nothing but a few colour images, and errs often. On clip art, on 600 images of
// CIFAR-10, and on ants and bees, EfficientNet-Lite0 makes 57, 55 and 18 % of the default's errors.
func pretrainedHelps(m bayes.Manifest, accuracy float64) bool {
	return m.Model == nil && m.Teacher == nil && m.Data.Channels == 3 && m.Data.Size < maxPretrainedSize && accuracy < maxPretrainedAccuracy
}

// tuningHelps reports whether training the weights of a pretrained network is the way to improve a
// run whose head has frozen features, and errs often. On 752 small photographs, of CIFAR-10, a head
// on EfficientNet-Lite0 is right on 70 %, and the network, fine-tuned, on 82 %; on clip art, the
// head is as good.
func tuningHelps(m bayes.Manifest, accuracy float64) bool {
	return m.Model != nil && m.Teacher == nil && m.Spec.Frozen() && accuracy < maxPretrainedAccuracy
}

// knownNetwork returns the ONNX file with which the user made another run in the directory that
// contains the run, as the Network, Cut and Input of a Spec; nil if there is none that fits the
// run's channels and classes.
func knownNetwork(run *bayes.Run) *bayes.Spec {
	manifests, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Clean(run.Dir())), "*", config.ManifestFile))
	if err != nil { // the directory's name is not a pattern
		return nil
	}
	data := run.Manifest().Data
	for _, path := range manifests {
		m, err := bayes.ReadManifest(filepath.Dir(path))
		if err != nil || m.Model == nil {
			continue
		}
		spec := bayes.Spec{Network: m.Spec.Network, Cut: m.Spec.Cut, Input: m.Spec.Input}
		channels, _, _, err := spec.ImageShape()
		if err != nil || cmp.Or(channels, data.Channels) != data.Channels { // such as a file that is gone
			continue
		}
		if _, err := spec.Build(len(data.ClassNames)); err == nil {
			return &spec
		}
	}
	return nil
}

// pretrainedFlags returns the flags of a run's data for a run with a pretrained network, which has
// an image size and channels of its own.
func pretrainedFlags(m bayes.Manifest, known bayes.Spec) string {
	m.Spec.Network, m.Spec.Cut, m.Spec.Input = known.Network, known.Cut, known.Input
	m.Notes = maps.Clone(m.Notes)
	for _, name := range []string{"size", "channels", "resize"} {
		delete(m.Notes, name)
	}
	return dataFlags(m)
}

// maxAdviceNetworks is the maximum number of copies of a teacher's network that is advised.
const maxAdviceNetworks = 4

// distilAgain returns the command that would make a distilled run better, and how many times as
// long it would take: the default number of epochs if it had fewer, or more networks instead of
// one, or twice the epochs.
func distilAgain(m bayes.Manifest) (command string, cost float64) {
	command, epochs := "distil "+config.Quoted(m.Spec.Teacher), m.Spec.Epochs
	usual := m.Spec
	usual.Epochs = 0
	if usual, err := usual.Resolve(); err == nil && epochs < usual.Epochs {
		return command + distilOptions(m), float64(usual.Epochs) / float64(epochs) // which may be more for few images
	}
	cost = 2
	networks := 0
	if m.Spec.Method.(bayes.Distillation).Networks == 1 {
		if teacher, err := bayes.Open(m.Spec.Teacher); err == nil { // it may have been moved
			spec := teacher.Manifest().Spec
			networks = min(maxAdviceNetworks, spec.Chains*max(1, spec.Cycles))
		}
	}
	if networks > 1 {
		command += fmt.Sprintf(" --networks %d", networks)
		cost = float64(networks)
	} else {
		epochs *= 2
	}
	return fmt.Sprintf("%s%s --epochs %d", command, distilOptions(m), epochs), cost
}

// distilOptions returns the flags of a distilled run's network, method and data.
func distilOptions(m bayes.Manifest) string {
	var flags strings.Builder
	add := func(name string, value any) { fmt.Fprintf(&flags, " --%s %s", name, config.Quoted(fmt.Sprint(value))) }
	method, usual := m.Spec.Method.(bayes.Distillation), usualDistillation()
	switch {
	case method.Networks > 1:
		add("networks", method.Networks)
	case method.Networks == 1:
	case strings.Contains(m.Spec.Network, "\n"):
		add("model", cmp.Or(m.Notes["model"], "FILE.yaml"))
	case m.Spec.Network != m.Teacher.Network:
		add("model", m.Spec.Network)
	case m.Spec.Start == "":
		add("networks", 0)
	}
	if m.Spec.Start != "" {
		add("start", m.Spec.Start)
	}
	if method.Copies != usual.Copies {
		add("copies", method.Copies)
	}
	if method.PrecisionWeight != usual.PrecisionWeight {
		add("precision-weight", method.PrecisionWeight)
	}
	for _, of := range []struct{ flag, note string }{{"data", unlabelledNote}, {"out", outNote}, {"data-folder", "data-folder"}} {
		if place := m.Notes[of.note]; place != "" {
			add(of.flag, place)
		}
	}
	return flags.String()
}

// dataFlags returns the flags of a run's data and network, for a run with the default method. The
// place of a network file, which a run keeps as text, is known from the notes.
func dataFlags(m bayes.Manifest) string {
	var flags strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m.Notes)) {
		if !slices.Contains([]string{"device", "precision", "model", "head"}, key) {
			fmt.Fprintf(&flags, " --%s %s", key, config.Quoted(m.Notes[key]))
		}
	}
	settings := m.Spec.Texts()
	for _, name := range []string{"model", "cut", "head", "freeze", "input", "subset", "class-weights"} {
		text := settings[name]
		if strings.Contains(text, "\n") {
			text = m.Notes[name]
		}
		if text != "" {
			fmt.Fprintf(&flags, " --%s %s", name, config.Quoted(text))
		}
	}
	return flags.String()
}

// advise returns whether a run is good enough, in words, and the command that would improve it, if
// there is one. head is the run of frozenHead, if any. took is the time of the run's steps, 0 if
// they were not made in one go.
func advise(r scoredRun, head []scoredRun, test *datasets.Dataset, took time.Duration) (text, command string, err error) {
	j, err := judge(r.run, r.assessment, head, test)
	if err != nil {
		return "", "", err
	}
	text = fmt.Sprintf("The run is %s.", j.verdict)
	if j.remark != "" {
		text += fmt.Sprintf(" %s.", j.remark)
	}
	if j.command == "" {
		return text, "", nil
	}
	cost := ""
	switch {
	case j.cost > 0 && took > 0:
		cost = fmt.Sprintf(", about %v", time.Duration(j.cost*float64(took)).Round(time.Second))
	case j.cost == 1:
		cost = ", about the time of this run"
	case j.cost > 0:
		cost = fmt.Sprintf(", about %.0f times the time of this run", j.cost)
	}
	return text + fmt.Sprintf(" To improve it%s:", cost), program(os.Executable()) + " " + j.command, nil
}

// adviceSection returns the section of a run's page with the text and the command of advise.
func adviceSection(text, command string) report.Section {
	return report.Section{Title: "Is it good enough?", Text: []string{text}, Code: command}
}
