package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

// calibrateFlags are the flags of calibrate.
type calibrateFlags struct {
	data           config.Data
	device         deviceFlags
	allowTrained   bool
	withoutDamaged bool
}

func calibrateCommand(c *console) *cobra.Command {
	var k calibrateFlags
	command := &cobra.Command{
		Use: "calibrate RUN", Short: "Calibrate a run on images that it was not trained on",
		Long: "Predicts labelled images that the run was not trained on, and keeps their scores in the run: prediction sets, in-distribution\n" +
			"decisions and certified risks then hold for images like these, and probabilities are scaled to fit them. fit does it\n" +
			"automatically on the validation split. Calibrate again when other images are to be predicted, such as those of another\n" +
			"camera, or when none were held out. The new calibration replaces the one before; pollen serve uses it after a SIGHUP.\n\n" +
			"The images must be drawn at random from those to be predicted: as varied, with the same mixture of classes. If the data have a\n" +
			"validation split, it is used, otherwise all their training images. Without --data, or with the run's own data, it is the\n" +
			"validation split that the run held out. The detector of strange images does not change: it still compares images with the\n" +
			"training images, and only the threshold of its decisions is calibrated.",
		Example: "  pollen calibrate runs/flowers --data greenhouse\n  pollen calibrate runs/digits --data scans.npz\n" +
			"  pollen calibrate runs/skin --data clinic --group column=patient\n" +
			"  pollen calibrate runs/flowers         # again, on the images that fit held out",
		Args: requireRun,
		RunE: func(command *cobra.Command, arguments []string) error {
			return k.run(command.Context(), arguments[0], c)
		},
	}
	f := command.Flags()
	f.StringVar(&k.data.Name, "data", "", "labelled images: a name, a directory or a file (default: the run's validation images)")
	config.BindDataDir(f, &k.data.Dir)
	k.data.BindLabel(f)
	k.data.BindWithoutClasses(f)
	f.StringVar(&k.data.Group, "group", "", "images of a patient, video or track count as one where images must be independent: parent, column=NAME or a\n"+
		"regular expression, as for fit")
	f.BoolVar(&k.allowTrained, "allow-trained", false, "calibrate although the run was trained on some of the images, so that nothing is guaranteed")
	k.data.BindMaxSkipped(f)
	k.device.bind(f)
	bindWithoutDamaged(f, &k.withoutDamaged)
	return command
}

func (k *calibrateFlags) run(ctx context.Context, dir string, c *console) error {
	if k.data.Name != "" {
		if err := config.Check("data", k.data.Name, k.data.Dir); err != nil {
			return err
		}
	}
	run, err := openRun(dir, k.withoutDamaged, c, bayes.WithObserver(c.observer("calibrate")), keepFeatures())
	if err != nil {
		return err
	}
	if err := run.CheckWritable(); err != nil {
		return err
	}
	heldOut, notes, err := k.heldOut(ctx, dir, run, c)
	if err != nil {
		return err
	}
	device, err := k.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	defer c.endProgress()
	before := "not calibrated"
	if calibration, err := run.Calibration(); err == nil {
		before = fmt.Sprintf("calibrated on %s of %s", counted(calibration.Examples, "image"), calibration.Data)
	} else if !os.IsNotExist(errors.Cause(err)) {
		c.remark("%v", err)
	}
	run = run.With(bayes.WithDevice(device), bayes.WithNotes(notes))
	if err := run.Calibrate(ctx, heldOut); err != nil {
		return err
	}
	c.endProgress()
	calibration, err := run.Calibration()
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s is calibrated on %s of %s; it was %s.\n\n", dir, counted(calibration.Examples, "image"), calibration.Data, before)
	if err := printCalibration(calibration, run.Manifest().Data.ClassNames, c); err != nil {
		return err
	}
	if page := filepath.Join(dir, report.PageFile); exists(page) {
		c.remark("%s still shows the calibration before: %s eval %s writes it again", page, program(os.Executable()), config.Quoted(dir))
	}
	return printSelfTest(run, c)
}

// heldOut opens the images to calibrate on, and returns notes on where they came from.
func (k *calibrateFlags) heldOut(ctx context.Context, dir string, run *bayes.Run, c *console) (*datasets.Dataset, map[string]string, error) {
	m := run.Manifest()
	own := config.DataOf(m).In(k.data.Dir)
	data := k.data
	isOwn := data.Name == "" || data.Place() == own.Place()
	if isOwn {
		if k.data.Group != "" && k.data.Group != own.Group {
			return nil, nil, usage("pollen: calibrate: --group of the run's own data must be %q, as in fit, got %q", own.Group, k.data.Group)
		}
		if k.data.Label != "" && k.data.Label != own.Label {
			return nil, nil, usage("pollen: calibrate: --label of the run's own data must be %q, as in fit, got %q", own.Label, k.data.Label)
		}
		if k.data.WithoutClasses != "" {
			return nil, nil, usage("pollen: calibrate: --without-classes needs --data, and other data than the run's own, whose classes it knows")
		}
		data = own
		data.MaxSkipped = cmp.Or(k.data.MaxSkipped, own.MaxSkipped)
	} else {
		data.Whole()
		data.Size, data.Channels, data.Resize = fmt.Sprintf("%dx%d", m.Data.Height, m.Data.Width), m.Data.Channels, config.Stretch
		if m.Data.Crop {
			data.Resize = config.Crop
		}
		data.FloatMax, data.Bits = own.FloatMax, m.Data.Bits
	}
	splits, err := openLike(ctx, data, own, c)
	if err != nil {
		return nil, nil, err
	}
	heldOut := splits.Validation
	switch {
	case heldOut == nil && isOwn:
		return nil, nil, usage("pollen: calibrate: no images of %s are held out for calibration, and the run was trained on the others: "+
			"give other images with --data, or train again with %s fit --validation 0.1", splits.Train.Name, program(os.Executable()))
	case heldOut == nil:
		heldOut = splits.Train
	}
	if !isOwn { // of its own data, the run has remarked on this
		remarkMissing(m.Data.ClassNames, heldOut, c)
	}
	trained, _ := remarkSeen(dir, run, data, heldOut, splits.Train.Hashes, validationImages, c)
	switch n := heldOut.Len(); {
	case trained == n:
		return nil, nil, usage("pollen: calibrate: %s was trained on all %s of %s: guarantees need images that it has not seen",
			dir, counted(n, "image"), heldOut.Name)
	case trained > 0 && !k.allowTrained:
		return nil, nil, usage("pollen: calibrate: guarantees need images that %s has not seen: remove the %d from the data, "+
			"or calibrate without a guarantee, with --allow-trained", dir, trained)
	}
	notes := map[string]string{}
	data.Notes(notes)
	noteTrained(notes, trained, c)
	maps.DeleteFunc(notes, emptyNote)
	return heldOut, notes, nil
}

// remarkMissing remarks on classes of which there are no images to calibrate on.
func remarkMissing(names []string, heldOut *datasets.Dataset, c *console) {
	if heldOut.Labels == nil {
		return
	}
	all := datasets.ClassCounts{Names: names}
	all.Counts[datasets.Validation] = make([]int, len(names))
	for class, n := range heldOut.Counts() {
		if at := slices.Index(names, heldOut.ClassNames[class]); at >= 0 {
			all.Counts[datasets.Validation][at] += n
		}
	}
	found := slices.Max(all.Counts[datasets.Validation]) > 0 // without any, calibrating is an error
	if text := all.Missing(datasets.Validation); text != "" && found {
		c.remark("%s", text)
	}
}

// noteTrained notes the number of images to calibrate on that the run was trained on.
func noteTrained(notes map[string]string, trained int, c *console) {
	if trained > 0 {
		notes[bayes.TrainedNote] = strconv.Itoa(trained)
		c.remark("prediction sets and certified risks are not guaranteed by this calibration, and probabilities are not scaled")
	}
}

// printCalibration prints the exponent of a calibration and its guarantees: which classes have no
// threshold of their own, and the certified risks.
func printCalibration(calibration *evaluate.Calibration, names []string, c *console) error {
	if calibration.Notes[bayes.TrainedNote] == "" {
		fmt.Fprintf(c.out, "Probabilities are scaled with the exponent %.3g: the averages over the samples %s.\n\n",
			calibration.Exponent, averagesText(calibration.Exponent))
	}
	if calibration.Supports(evaluate.Level) {
		sets, err := calibration.Sets(evaluate.Level, evaluate.SetRule{PerClass: true})
		if err != nil {
			return err
		}
		if text := fallbackText(sets, names); text != "" {
			fmt.Fprintf(c.out, "Class-conditional sets, --per-class: %s.\n\n", text)
		}
	} else {
		fmt.Fprintf(c.out, "Prediction sets at level %g need at least %d images, got %d.\n\n",
			evaluate.Level, evaluate.NeededExamples(evaluate.Level), calibration.Examples)
	}
	table := report.NewTable("answers with a certified error", report.Column{Title: "unscaled confidence from", Format: "%s"},
		report.Column{Title: "answered", Format: "%.3f"})
	for _, risk := range evaluate.DefaultRisks() {
		certificate, err := calibration.Certify(risk, evaluate.RiskConfidence)
		if err != nil {
			return err
		}
		answered := 0.0
		if certificate.Certified {
			answered = float64(certificate.Answered) / float64(certificate.Images)
		}
		if err := table.Add(fmt.Sprintf("--risk %g", risk), certificate.From(), answered); err != nil {
			return err
		}
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	return nil
}

// averagesText describes probabilities that must be raised to a power.
func averagesText(exponent float64) string {
	switch {
	case exponent > 1.05:
		return "are too cautious"
	case exponent < 0.95:
		return "are too certain"
	}
	return "need little of it"
}
