package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/report"
)

// predictFlags are the flags of predict.
type predictFlags struct {
	device         deviceFlags
	guarantees     guaranteeFlags
	output         outputFlags
	floatMax       float64
	bits           int
	samples, page  string
	withoutDamaged bool
}

func predictCommand(c *console) *cobra.Command {
	var p predictFlags
	command := &cobra.Command{
		Use: "predict RUN FILE|DIR...", Short: "Classify images, with uncertainty and conformal prediction sets",
		Long: "Averages the probabilities of all samples of a run for each image (the posterior predictive). Prints the class, the\n" +
			"confidence, the entropy and mutual information in nats, the conformal prediction set, and whether the image is in\n" +
			"distribution. Files are images, CSV files of their names, Parquet files of images, or arrays (NPY, NPZ, CSV, IDX); labels\n" +
			"are not read.\n\n" +
			"A prediction set contains the true class with probability --level. A fraction of --in-distribution-rate of images like the\n" +
			"training images is reported as in distribution. With --risk, only images whose confidence is high enough for a certified\n" +
			"error rate are answered; the others should be referred to a person. All of this holds for images like those that the run\n" +
			"was calibrated on: fit calibrates automatically on the validation split, and calibrate on other images.\n\n" +
			"Tables keep their column of identifiers, such as ImageId. A submission for Kaggle has the class of each image, or the\n" +
			"columns of --template. Floating-point pixels are refused unless --float-max states whether they go up to 1 or 255.\n\n" +
			"An image that cannot be read is reported with the reason, in JSON and CSV too, and the others are answered. The exit code\n" +
			"is then 6, or 1 if no image can be read. A submission must have a row for each image: with one that cannot be read, nothing\n" +
			"is predicted and the exit code is 1, unless --unread-class states what to write for it.",
		Example: "  pollen predict runs/flowers rose.jpg images/\n  pollen predict runs/flowers images/ --level 0.99 --csv > answers.csv\n" +
			"  pollen predict runs/flowers images/ --risk 0.02    # at most 2 % errors among the images that are answered\n" +
			"  pollen predict runs/digits test.csv --format submission --out submission.csv\n" +
			"  pollen predict runs/dogs test/ --template sample_submission.csv --out submission.csv",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) < 2 {
				return usage("pollen: predict needs the directory of a run, and at least one image or directory of images")
			}
			if slices.Contains(arguments, "-") {
				return usage("pollen: predict does not read the standard input, got -; write it to a file (a file named - is ./-)")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return p.run(command.Context(), arguments[0], arguments[1:], c)
		},
	}
	f := command.Flags()
	p.guarantees.bindLevels(f)
	p.guarantees.bind(f)
	p.output.bind(f)
	f.Float64Var(&p.floatMax, "float-max", 0,
		"the largest value of floating-point pixels in arrays and tables: 1 or 255\n(default: that of fit, or they are refused)")
	f.IntVar(&p.bits, "bits", 0, "significant bits, 8 to 16, of image files with 16 bits per channel, and of arrays of type uint16\n"+
		"(default: that of fit; without one 16 for files, and such arrays are refused)")
	f.StringVar(&p.samples, "samples", "", "also write each sample's probabilities to this NPZ file: probabilities [S N K], weights [S]")
	f.StringVar(&p.page, "page", "", "also write a page with images and answers into this directory")
	p.device.bind(f)
	bindWithoutDamaged(f, &p.withoutDamaged)
	return command
}

func (p *predictFlags) run(ctx context.Context, dir string, paths []string, c *console) error {
	if err := p.output.checkPaths(append([]string{dir}, paths...)); err != nil {
		return err
	}
	if err := p.output.resolve(); err != nil {
		return err
	}
	if err := config.CheckPage(p.page, paths...); err != nil {
		return err
	}
	options, err := p.guarantees.options()
	if err != nil {
		return err
	}
	run, err := openRun(dir, p.withoutDamaged, c, append(options, bayes.WithObserver(c.observer("predict")), keepFeatures())...)
	if err != nil {
		return err
	}
	m := run.Manifest()
	o := c.imagesOf(ctx, m)
	o.MaxSkipped, o.FloatMax, o.Bits = 1, cmp.Or(p.floatMax, o.FloatMax), cmp.Or(p.bits, o.Bits)
	images, err := datasets.ReadImages(paths, o)
	if err != nil {
		return err
	}
	if err := p.output.checkImages(images, m.Data.ClassNames, c); err != nil {
		return err
	}
	device, err := p.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	defer c.endProgress()
	answers, unwritten := p.answers(ctx, run.With(bayes.WithDevice(device)), images)
	if answers == nil {
		return unwritten
	}
	c.endProgress()
	if err := p.guarantees.remark(run, c); err != nil {
		return err
	}
	if images.IDs != nil {
		for i := range answers {
			answers[i].ID = images.IDs[i]
		}
	}
	err = p.finish(answers, images, m.Data.ClassNames, c)
	return cmp.Or(unwritten, err)
}

// unreadError is the error if some of the images could not be read, and the others were answered.
type unreadError struct{ unread, images int }

// Error returns the numbers.
func (e unreadError) Error() string {
	return fmt.Sprintf("pollen: predict: %d of %s could not be read; the others are answered", e.unread, counted(e.images, "image"))
}

// finish prints the answers, and names the images that could not be read.
func (p *predictFlags) finish(answers []bayes.Answer, images *datasets.Dataset, classes []string, c *console) error {
	failed := images.Failed
	for _, f := range failed {
		answers = append(answers, p.output.unread(f, classes))
	}
	if err := p.output.write(answers, classes, images.IDName, c); err != nil || len(failed) == 0 {
		return err
	}
	for _, f := range failed {
		c.remark("%v", f)
	}
	if class := p.output.unreadClass; class != "" {
		c.remark("pollen: submission: images that could not be read have the class %s", class)
	}
	return unreadError{len(failed), len(answers)}
}

// answers predicts, and writes the files of --samples and --page. If that fails, it returns the
// answers with the error.
func (p *predictFlags) answers(ctx context.Context, run *bayes.Run, images *datasets.Dataset) ([]bayes.Answer, error) {
	var visit func(probabilities []float32, weight float64) error
	var kept []float32
	var weights []float64
	if p.samples != "" {
		visit = func(probabilities []float32, weight float64) error {
			if err := checkKept(len(kept) + len(probabilities)); err != nil {
				return err
			}
			kept, weights = append(kept, probabilities...), append(weights, weight)
			return nil
		}
	}
	predictions, err := run.Predictions(ctx, images, visit)
	if err != nil {
		return nil, err
	}
	answers, err := run.Answers(predictions, images.Files)
	if err != nil {
		return nil, err
	}
	if p.samples != "" {
		shape := []int{len(weights), images.Len(), run.Manifest().Data.Classes()}
		if err := npz.Write(p.samples, npz.Array{Name: "probabilities", Shape: shape, Values: kept},
			npz.Array{Name: "weights", Shape: shape[:1], Values: weights}); err != nil {
			return answers, err
		}
	}
	if p.page == "" {
		return answers, nil
	}
	if err := os.MkdirAll(p.page, 0o755); err != nil {
		return answers, errors.Wrap(err, "pollen: page")
	}
	table, err := answerTable(answers)
	if err != nil {
		return answers, err
	}
	subject, err := predictedSubject(run, predictions, images)
	if err != nil {
		return answers, err
	}
	guarantees, err := p.guarantees.sentences(run)
	if err != nil {
		return answers, err
	}
	m := run.Manifest()
	return answers, untilCanceled(ctx, func() error {
		return report.WritePage(p.page, "Answers", fmt.Sprintf("%s, trained on %s", bayes.MethodText(m.Spec.Method), m.Data.Name),
			[]report.Subject{subject}, report.Section{Title: "Answers", Table: table, Text: guarantees})
	})
}

// checkKept returns a MemoryError if a slice cannot grow to n probabilities, which copies it.
func checkKept(n int) error {
	const bytes, copies, few = 4, 2, 1 << 20
	if n < few {
		return nil
	}
	return memory.Check("pollen: predict: keeping the probabilities of each sample, --samples,", bytes*copies*int64(n), func(int64) []string {
		return []string{"fewer images at a time"}
	})
}
