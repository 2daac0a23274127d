package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// prepared holds the inputs of a run that is about to start.
type prepared struct {
	asked  bayes.Spec // as requested
	spec   bayes.Spec // with the defaults that do not depend on data
	data   *datasets.Splits
	notes  map[string]string
	device tensor.Device
}

// prepare checks the flags and opens the data and the device. The caller closes the device.
func prepare(ctx context.Context, s *config.Settings, c *console) (p prepared, err error) {
	if p.asked, err = s.Spec(); err != nil {
		return p, err
	}
	if p.spec, err = p.asked.Resolve(); err != nil {
		return p, config.AsUsageError(err)
	}
	if err := config.Check("data", s.Data.Name, s.Data.Dir); err != nil {
		return p, err
	}
	if p.device, err = (deviceFlags{s.Device}).open(c); err != nil {
		return p, err
	}
	if err = shapeFor(p.asked, &s.Data); err == nil {
		p.data, err = openTraining(ctx, s.Data, c)
	}
	if err != nil {
		p.device.Close()
		return p, err
	}
	p.notes = map[string]string{"device": s.Device.Name, "precision": s.Device.Precision}
	s.Data.Notes(p.notes)
	s.NoteNetworkFiles(p.notes)
	maps.DeleteFunc(p.notes, emptyNote)
	return p, nil
}

// shapeFor requests images as the network of an ONNX file reads them, unless their size and
// channels are given: in colour and of the file's size, or of 224x224 if the file leaves the size
// open. It returns the errors that can be found before images are read.
func shapeFor(spec bayes.Spec, d *config.Data) error {
	channels, height, width, err := spec.ImageShape()
	if err != nil {
		return err
	}
	if channels == 0 {
		const anyNumber = 2 // of classes
		_, err = spec.Build(anyNumber)
		return err
	}
	switch h, w, err := config.ParseSize(d.Size); {
	case err != nil:
		return err
	case h > 0 && (height > 0 && h != height || width > 0 && w != width):
		return usage("pollen: %s reads images of %dx%d: leave out --size, got %s", spec.Network, height, width, d.Size)
	}
	if d.Channels = cmp.Or(d.Channels, channels); d.Channels != channels {
		return usage("pollen: %s reads images of %d channels: leave out --channels, got %d", spec.Network, channels, d.Channels)
	}
	d.Resize = cmp.Or(d.Resize, config.Crop)
	if d.Size == "" {
		const customary = 224
		d.Size = fmt.Sprintf("%dx%d", cmp.Or(height, customary), cmp.Or(width, customary))
	}
	return nil
}

// emptyNote reports whether a note has no text.
func emptyNote(_, text string) bool { return text == "" }

func runFit(ctx context.Context, s *config.Settings, dir string, c *console) error {
	dir, err := newRunDir(dir, "fit")
	if err != nil {
		return err
	}
	p, err := prepare(ctx, s, c)
	if err != nil {
		return err
	}
	defer p.device.Close()
	return p.fit(ctx, dir, nil, c)
}

// fit trains a run in dir, with more options, and scores it. A distilled run is compared with its
// teacher on others, too.
func (p prepared) fit(ctx context.Context, dir string, others []*datasets.Dataset, c *console, more ...bayes.Option) error {
	if err := printSummary(p.spec, p.data, c); err != nil {
		return err
	}
	remarkCalibration(p.data, dir, c)
	name := bayes.MethodName(p.spec.Method)
	began := c.now()
	run, err := bayes.Fit(ctx, p.asked, p.data, dir,
		append(more, bayes.WithDevice(p.device), bayes.WithObserver(c.observer(name)), bayes.WithNotes(p.notes), keepFeatures())...)
	return finishFit(ctx, run, err, finished{name: name, data: p.data, others: others, took: c.now().Sub(began), device: p.device}, c)
}

// newRunDir returns the given directory, or else runs/<name>-1, -2, ..., the first that does not
// exist, and checks that it is new or empty. Two processes that call it at the same time may get
// the same directory; bayes.Fit then refuses the second.
func newRunDir(given, name string) (string, error) {
	for i := 1; given == ""; i++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", name, i))
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			given = dir
		} else if err != nil {
			return "", errors.Wrap(err, "pollen: run directory")
		}
	}
	return given, rundir.CheckEmpty(given)
}

// resumeRun opens device and data and continues the run in dir.
func resumeRun(ctx context.Context, m bayes.Manifest, device deviceFlags, dataDir, dir string, more []bayes.Option, c *console) error {
	data := config.DataOf(m).In(dataDir)
	opened, err := device.open(c)
	if err != nil {
		return err
	}
	defer opened.Close()
	splits, err := openData(ctx, data, c)
	if err != nil {
		return err
	}
	unlabelled, err := unlabelledImages(ctx, m, m.Notes[unlabelledNote], c)
	if err != nil {
		return err
	}
	others, err := outImages(ctx, m, m.Notes[outNote], dataDir, c)
	if err != nil {
		return err
	}
	name := bayes.MethodName(m.Spec.Method)
	run, err := bayes.Resume(ctx, dir, splits,
		append(more, bayes.WithDevice(opened), bayes.WithObserver(c.observer(name)), bayes.WithUnlabelled(unlabelled), keepFeatures())...)
	return finishFit(ctx, run, err, finished{name: name, data: splits, others: others, device: opened}, c)
}

// finished describes a run for finishFit: the name of its method, its data, the out-of-distribution
// data on which a distilled run is compared with its teacher, and the time of its steps, or 0 if
// they were not made in one go. mixing is known of a gathered run, which has no device.
type finished struct {
	name   string
	data   *datasets.Splits
	others []*datasets.Dataset
	took   time.Duration
	device tensor.Device
	mixing *diagnostics.Mixing
}

// finishFit scores a finished run, or reports the samples of a failed or stopped one.
func finishFit(ctx context.Context, run *bayes.Run, err error, f finished, c *console) error {
	data := f.data
	c.endProgress()
	if err != nil {
		return remarkKept(err, c)
	}
	compared := []scoredRun{{name: f.name, run: run, mixing: f.mixing}}
	var head []scoredRun
	if data.Test != nil {
		if err := assess(ctx, compared, data.Test, nil, c); err != nil {
			c.remark("%s: all steps are done; score them with: pollen eval %s", run.Dir(), run.Dir())
			return err
		}
		if err := run.RecordTest(compared[0].assessment.In); err != nil {
			return err
		}
		if head, err = frozenHead(ctx, run, data, f.device, c); err != nil {
			return err
		}
		scored := append(compared, head...)
		if err := printScores(scored, subjectsOf(scored, nil, nil), "", false, c); err != nil {
			return err
		}
		fmt.Fprintln(c.out)
	}
	if err := measureFidelity(ctx, run, data, f.others, c); err != nil {
		return err
	}
	if err := printSelfTest(run, c); err != nil {
		return err
	}
	if _, err := printChains(compared, true, c); err != nil {
		return err
	}
	var sections []report.Section
	text, command := "", ""
	if data.Test != nil && len(run.Manifest().Parts) == 0 {
		if text, command, err = advise(compared[0], head, data.Test, f.took); err != nil {
			return err
		}
		sections = []report.Section{adviceSection(text, command)}
	}
	page, err := writePage(ctx, run.Dir(), compared, data.Test, nil, sections...)
	if err != nil {
		c.remark("%s: all steps are done; write its page with: pollen eval %s", run.Dir(), run.Dir())
		return err
	}
	fmt.Fprintf(c.out, "\nRun directory: %s\n%s", run.Dir(), page)
	if text != "" {
		fmt.Fprintln(c.out, "\n"+strings.TrimSpace(text+" "+command))
	}
	return nil
}

// remarkKept reports the samples of a failed or stopped run and how to continue it. It returns the
// error without what it has reported.
func remarkKept(err error, c *console) error {
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) {
		return err
	}
	cause := errors.WithMessage(unfinished.Cause, "pollen")
	c.remark("%s: %d of %d steps done, %s kept.", unfinished.Dir, unfinished.Made, unfinished.Steps, counted(unfinished.Samples, "sample"))
	if unfinished.WarmEpochs > 0 {
		c.remark("The warm start has made %s, which are kept, too.", counted(unfinished.WarmEpochs, "epoch"))
	}
	if errors.As(err, new(*bayes.DivergedError)) {
		return cause // whose text has the advice
	}
	c.remark("Continue with: %s fit --resume %s", program(os.Executable()), config.Quoted(unfinished.Dir))
	return cause
}

// estimate times some steps and prints the cost of the whole run, with more options.
func (p prepared) estimate(ctx context.Context, c *console, more ...bayes.Option) error {
	if err := printSummary(p.spec, p.data, c); err != nil {
		return err
	}
	options := append(more, bayes.WithDevice(p.device))
	m, err := bayes.EstimateMemory(p.asked, p.data, options...)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, m)
	if !m.Fits() {
		c.remark("the run needs more memory than is available: fit would refuse it")
	}
	total, step, err := comparison.Cost(ctx, p.asked, p.data.Train, 8, c.now, func(e bayes.Event) {
		if e.Remark != "" {
			c.remark("%s", e.Remark)
		}
	}, options...)
	if err != nil {
		return err
	}
	cost := step * time.Duration(total)
	text := fmt.Sprintf("%d steps of %.1f ms", total, float64(step)/float64(time.Millisecond))
	if _, ok := p.spec.Method.(bayes.Distillation); ok {
		images, each, err := comparison.TeacherCost(ctx, p.asked, p.data.Train, c.now, options...)
		if err != nil {
			return err
		}
		cost += each * time.Duration(images)
		text += fmt.Sprintf(" and predictions of the teacher for %d images, %.2f ms each", images, float64(each)/float64(time.Millisecond))
	}
	about := "about"
	if p.spec.WarmStart != nil {
		text, about = "up to "+text+", as the warm start ends when it no longer improves", "at most about"
	}
	fmt.Fprintf(c.out, "%s: %s %s, plus predictions\n", text, about, cost.Round(time.Second))
	return nil
}
