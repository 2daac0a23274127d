package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/export"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

func fitCommand(c *console) *cobra.Command {
	flags := &config.Settings{}
	var dir, file, resume string
	var estimate, withoutDamaged bool
	var task taskFlags
	command := &cobra.Command{
		Use:   "fit",
		Short: "Train a network and keep its posterior samples",
		Long: "Trains a network, keeps samples of its weights in a run directory, and scores the posterior predictive, which is their\n" +
			"averaged probability, on the test data.\n" +
			config.Listing("Models", append(layers.Names(), "a network file FILE.yaml")...) +
			config.Listing("Data", append(datasets.Names(), "a directory with a directory of images for each class, optionally below train, val and test",
				"files of arrays (NPZ, IDX, CIFAR, CSV)")...) +
			config.Listing("Methods", bayes.MethodNames()...) +
			config.Listing("", append([]string{"with attributes, by name or in order"}, bayes.MethodForms()...)...) +
			config.Listing("Schedules", optimizers.ScheduleForms()...),
		Example: `  pollen fit --method psgld --chains 4 --folder runs/four
  pollen fit --data flowers --model cnn --method sghmc --epochs 20
  pollen fit --method momentum:decay=0.9,weight-decay=1e-4 --schedule cosine:0.02,0 --epochs 5
  pollen fit --model mlp-400-400 --prior laplace:0.1 --temperature 0.5
  pollen fit --config run.yaml --seed 2            # a file's settings with another seed
  pollen fit --config runs/four/manifest.json      # repeat a run
  pollen fit --resume runs/four                    # continue after Ctrl-C, a crash, a reboot`,
		Args: noArguments,
	}
	flags.Bind(command.Flags())
	command.Flags().StringVar(&file, "config", "", "YAML file whose keys are the flags above, or a run's "+config.ManifestFile+"; flags override it")
	command.Flags().StringVar(&dir, "folder", "", "run directory, new or empty (default runs/fit-1, runs/fit-2, ...)")
	task.bind(command.Flags())
	command.Flags().BoolVar(&estimate, "estimate", false, "time a few steps, print the estimated time, disk space and memory of the run, and exit")
	command.Flags().StringVar(&resume, "resume", "",
		"directory of a run to continue; combines only with --device, --threads, --precision, --data-folder,\n--without-damaged and --tensorboard")
	bindWithoutDamaged(command.Flags(), &withoutDamaged)
	var board string
	command.Flags().StringVar(&board, "tensorboard", "", "directory in which TensorBoard's event files are written during the run (default: none)")
	command.RunE = func(command *cobra.Command, _ []string) (err error) {
		if board != "" && !estimate {
			live, failed := export.NewLive(board, c.now)
			if failed != nil {
				return failed
			}
			c.also = live.Observe
			defer func() { err = cmp.Or(err, live.Close()) }()
		}
		if resume != "" {
			return resumeFit(command.Context(), command.Flags(), flags, resume, withoutDamagedIf(withoutDamaged), c)
		}
		if withoutDamaged && task.number == "" && !task.orStart {
			return usage("pollen: --without-damaged applies to --resume, --resume-or-start and --task")
		}
		s, err := config.Layered(command.Flags(), file)
		if err != nil {
			return err
		}
		switch tasks := s.Plan.Tasks(); {
		case task.number == "" && tasks != 1:
			return usage("pollen: the configuration has %d tasks: choose one with --task, or run all with pollen submit", tasks)
		case task.number != "":
			if dir, err = s.ForTask(task.number, dir); err != nil {
				return err
			}
		}
		if estimate {
			return runEstimate(command.Context(), s, c)
		}
		if task.orStart || task.number != "" {
			return resumeOrStart(command.Context(), s, dir, withoutDamagedIf(withoutDamaged), c)
		}
		return runFit(command.Context(), s, dir, c)
	}
	return command
}

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
		p.data, err = openData(ctx, s.Data, c)
	}
	if err != nil {
		p.device.Close()
		return p, err
	}
	p.notes = map[string]string{"device": s.Device.Name, "precision": s.Device.Precision}
	s.Data.Notes(p.notes)
	maps.DeleteFunc(p.notes, emptyNote)
	return p, nil
}

// shapeFor requests images as the network of an ONNX file reads them, unless their size and
// channels are given: colour images of the file's size, or of 224x224 if it leaves that open. Of
// other networks it finds mistakes that show without images, before these are read.
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
	if d.Channels == 0 {
		d.Channels = channels
	}
	if d.Resize == "" {
		d.Resize = config.Crop
	}
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
	return p.fit(ctx, dir, s.Data.Dir, c)
}

// fit trains a run in dir, with more options, and scores it. Other data are searched for in dataDir
// first.
func (p prepared) fit(ctx context.Context, dir, dataDir string, c *console, more ...bayes.Option) error {
	if err := printSummary(p.spec, p.data, c); err != nil {
		return err
	}
	remarkCalibration(p.data, dir, c)
	name := bayes.MethodName(p.spec.Method)
	began := c.now()
	run, err := bayes.Fit(ctx, p.asked, p.data, dir,
		append(more, bayes.WithDevice(p.device), bayes.WithObserver(c.observer(name)), bayes.WithNotes(p.notes), keepFeatures())...)
	return finishFit(ctx, run, err, finished{name, p.data, dataDir, c.now().Sub(began)}, c)
}

// newRunDir returns the given directory, or else the next numbered one for name, and checks that it
// is new or empty.
func newRunDir(given, name string) (dir string, err error) {
	if dir = given; dir == "" {
		if dir, err = bayes.NewDir(name); err != nil {
			return "", err
		}
	}
	return dir, bayes.CheckEmpty(dir)
}

// resumeFit continues the run in dir, on the given device or else the one that the run used.
func resumeFit(ctx context.Context, given *pflag.FlagSet, flags *config.Settings, dir string, more []bayes.Option, c *console) error {
	m, err := bayes.ReadManifest(dir)
	if err != nil {
		return err
	}
	device := deviceFlags{flags.Device}
	device.asNoted(m.Notes, given)
	if err := checkResumeFlags(given, "run"); err != nil {
		return err
	}
	return resumeRun(ctx, *m, device, flags.Data.Dir, dir, more, c)
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
	name := bayes.MethodName(m.Spec.Method)
	run, err := bayes.Resume(ctx, dir, splits,
		append(more, bayes.WithDevice(opened), bayes.WithObserver(c.observer(name)), bayes.WithUnlabelled(unlabelled), keepFeatures())...)
	return finishFit(ctx, run, err, finished{name, splits, dataDir, 0}, c)
}

// checkResumeFlags returns an error for flags that cannot be combined with --resume.
func checkResumeFlags(given *pflag.FlagSet, what string) (err error) {
	may := []string{"resume", "threads", "device", "precision", "data-folder", "without-damaged", "tensorboard"}
	given.Visit(func(f *pflag.Flag) {
		if !slices.Contains(may, f.Name) {
			err = usage("pollen: --%s cannot be combined with --resume: the %s keeps its configuration", f.Name, what)
		}
	})
	return err
}

// finished is what finishFit needs to know of a run: the name of its method, its data, the
// directory that data are searched for in, and the time of its steps, or 0 if they were not made
// together.
type finished struct {
	name    string
	data    *datasets.Splits
	dataDir string
	took    time.Duration
}

// finishFit scores a finished run, or reports the samples of a failed or stopped one.
func finishFit(ctx context.Context, run *bayes.Run, err error, f finished, c *console) error {
	data := f.data
	c.endProgress()
	if err != nil {
		remarkKept(err, c)
		return err
	}
	compared := []scoredRun{{name: f.name, run: run}}
	if data.Test != nil {
		if err := assess(ctx, compared, data.Test, nil, c); err != nil {
			c.remark("%s: all steps are done; score them with: pollen eval %s", run.Dir(), run.Dir())
			return err
		}
		if err := run.RecordTest(compared[0].assessment.In); err != nil {
			return err
		}
		if err := printScores(compared, subjectsOf(compared, nil, nil), "", false, c); err != nil {
			return err
		}
		fmt.Fprintln(c.out)
	}
	if err := measureFidelity(ctx, run, data, f.dataDir, c); err != nil {
		return err
	}
	if err := printSelfTest(run, c); err != nil {
		return err
	}
	if _, err := printChains(compared, true, c); err != nil {
		return err
	}
	page, err := writePage(ctx, run.Dir(), compared, data.Test, nil)
	if err != nil {
		c.remark("%s: all steps are done; write its page with: pollen eval %s", run.Dir(), run.Dir())
		return err
	}
	fmt.Fprintf(c.out, "\nRun directory: %s\n%s", run.Dir(), page)
	if data.Test == nil || len(run.Manifest().Parts) > 0 {
		return nil
	}
	return printAdvice(compared[0], data.Test, f.took, c)
}

// remarkKept reports the samples of a failed or stopped run and how to continue it.
func remarkKept(err error, c *console) {
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) {
		return
	}
	c.remark("%s: %d of %d steps done, %s kept.", unfinished.Dir, unfinished.Made, unfinished.Steps, counted(unfinished.Samples, "sample"))
	if errors.As(err, new(*bayes.DivergedError)) {
		return // whose text has the advice
	}
	c.remark("Continue with: %s fit --resume %s", program(os.Executable()), unfinished.Dir)
}

// printSummary prints the data and the network that are about to be trained.
func printSummary(spec bayes.Spec, splits *datasets.Splits, c *console) error {
	data := splits.Train
	network, err := spec.Build(data.Classes)
	if err != nil {
		return err
	}
	summary, err := layers.Summarize(network, tensor.Shape{data.Channels, data.Height, data.Width})
	if err != nil {
		return config.AsUsageError(err)
	}
	summary = withoutFrozen(summary, spec)
	first, used := "", *splits
	if spec.Subset > 0 && spec.Subset < data.Len() {
		first = fmt.Sprintf(", %d of them", spec.Subset)
		if used.Train, err = data.First(spec.Subset); err != nil {
			return err
		}
	}
	c.remark("%s, %s of %dx%dx%d in %s%s", data.Name, counted(data.Len(), "image"), data.Channels, data.Height, data.Width,
		counted(data.Classes, "class"), first)
	if err := printClasses(&used, c); err != nil {
		return err
	}
	c.remark("held out: %s for scores, %s for calibration\n%v", imagesOf(splits.Test), imagesOf(splits.Validation), summary)
	last := summary.Rows[len(summary.Rows)-1]
	if slices.Contains([]string{"relu", "sigmoid", "softplus", "softsign", "tanh"}, last.Kind) {
		c.remark("the last layer, %s, limits logits to the range of %s: networks usually end in a linear layer", last.Name, last.Kind)
	}
	return nil
}

// withoutFrozen returns a summary with one row for the frozen network of an ONNX file.
func withoutFrozen(s layers.Summary, spec bayes.Spec) layers.Summary {
	head := slices.IndexFunc(s.Rows, func(r layers.Row) bool { return r.Parameters > 0 })
	if !spec.Frozen() || head < 1 {
		return s
	}
	frozen := layers.Row{Name: spec.NetworkName(), Kind: "frozen", Output: s.Rows[head-1].Output}
	for _, row := range s.Rows[:head] {
		frozen.Flops += row.Flops
	}
	s.Rows = append([]layers.Row{frozen}, s.Rows[head:]...)
	return s
}

// remarkCalibration warns, before a run begins, that it will have no guarantees or not all of them.
func remarkCalibration(splits *datasets.Splits, dir string, c *console) {
	needed := evaluate.NeededExamples(evaluate.Level)
	switch held := splits.Validation; {
	case held == nil:
		c.remark("no images are held out for calibration: the run will have no prediction sets, in-distribution decisions and certified risk. "+
			"--validation 0.1 holds out a tenth of the training images; images that it has not seen calibrate it later: %s calibrate %s --data DIR",
			program(os.Executable()), dir)
	case held.Len() < needed:
		c.remark("%s held out for calibration: prediction sets and in-distribution decisions at level %g need at least %d; hold out more with --validation, "+
			"or calibrate later: %s calibrate %s --data DIR", counted(held.Len(), "image"), evaluate.Level, needed, program(os.Executable()), dir)
	}
}

// classCounts lists the classes with their numbers of images: all of up to 12, else the first eight
// and the smallest and largest number.
func classCounts(data *datasets.Dataset) string {
	const most, first = 12, 8
	counts := data.Counts()
	var list []string
	for class, count := range counts[:min(len(counts), most)] {
		list = append(list, fmt.Sprintf("%s %d", quotedName(data.ClassNames[class]), count))
	}
	if len(counts) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, ... (%d to %d images each)", strings.Join(list[:first], ", "), slices.Min(counts), slices.Max(counts))
}

// quotedName returns the name of a class, in quotes if it has a comma or is not printable.
func quotedName(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name || strings.Contains(name, ", ") {
		return quoted
	}
	return name
}

// imagesOf returns the number of images of a split as text.
func imagesOf(split *datasets.Dataset) string {
	if split == nil {
		return "none"
	}
	return counted(split.Len(), "image")
}

// runEstimate times some steps and prints the cost of the whole run.
func runEstimate(ctx context.Context, s *config.Settings, c *console) error {
	p, err := prepare(ctx, s, c)
	if err != nil {
		return err
	}
	defer p.device.Close()
	return p.estimate(ctx, c)
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
