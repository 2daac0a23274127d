package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// scoreFlags are the flags of the commands that score runs.
type scoreFlags struct {
	data       config.Data
	device     deviceFlags
	guarantees guaranteeFlags

	other, page, against string
	json, withoutDamaged bool
	every                bool // all OOD scores
}

func (s *scoreFlags) bind(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&s.data.Name, "data", "", "data set whose test images are scored, or all its images if it is not split (default: the run's own)")
	config.BindDataDir(f, &s.data.Dir)
	s.data.BindLabel(f)
	s.data.BindWithoutClasses(f)
	s.data.BindMaxSkipped(f)
	s.device.bind(f)
	bindWithoutDamaged(f, &s.withoutDamaged)
}

// bindOutput binds the flags of guarantees and of the output.
func (s *scoreFlags) bindOutput(command *cobra.Command) {
	s.guarantees.bind(command.Flags())
	command.Flags().StringVar(&s.page, "page", "", "directory for report.html and figures (default: the run's own; none with several runs or --data)")
	command.Flags().BoolVar(&s.json, "json", false, "print the scores as JSON")
}

func evalCommand(c *console) *cobra.Command {
	var s scoreFlags
	command := &cobra.Command{
		Use: "eval RUN...", Short: "Score runs on test data: accuracy, likelihood, calibration",
		Long: "Averages the probabilities of all samples of a run (the posterior predictive) and scores them on test images: accuracy,\n" +
			"negative log likelihood, calibration errors, coverage of conformal prediction sets, over all images and for each class,\n" +
			"with precision, recall, F1 and one-vs-rest AUC, and the fraction of images that can be answered with a certified error rate. The sets\n" +
			"contain the true class with probability 0.95, those of predict and serve with the probability --level, by default 0.9.\n" +
			"For runs that differ only in their seed it also prints means and standard errors.",
		Example: "  pollen eval runs/main-1/sgd runs/main-1/sgld\n  pollen eval runs/fit-1 --data flowers-of-last-year\n" +
			"  pollen eval runs/sgld runs/auto --against runs/hmc",
		Args: requireRuns,
		RunE: func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, c) },
	}
	command.Flags().StringVar(&s.against, "against", "", "reference for agreement and total variation: a run, such as one of hmc, or a text file with a\n"+
		"line of class probabilities for each test image. A first line may name the columns: the classes,\n"+
		"and file for the images' files, which match columns and lines by name. Without it, columns are\n"+
		"the classes in the order of their numbers, then names, and lines the test images in the order\n"+
		"of the data: in a directory by class, then by file name, as text")
	s.bind(command)
	s.bindOutput(command)
	return command
}

func oodCommand(c *console) *cobra.Command {
	var s scoreFlags
	command := &cobra.Command{
		Use: "ood RUN...", Short: "Measure out-of-distribution detection",
		Long: "Scores runs as eval does, and measures how well their uncertainties separate in-distribution test images from images\n" +
			"out of distribution: AUROC, AUPR and FPR95, with out of distribution as the positive class. The table of scores uses the\n" +
			"entropy of the averaged probabilities.",
		Example: "  pollen ood runs/main-1/sgd runs/main-1/sgld\n  pollen ood runs/fit-1 --out notmnist\n" +
			"  pollen ood runs/signs --out signs      # the classes held out by --without-classes",
		Args: requireRuns,
		RunE: func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, c) },
	}
	command.Flags().StringVar(&s.other, "out", "glyphs", "out-of-distribution data: a name, a directory or a file")
	command.Flags().StringVar(&s.data.Classes, "classes", "", "use only these classes of --out (default: all; of the run's own data set, those held out)")
	command.Flags().BoolVar(&s.every, "all-scores", false,
		"print all OOD scores (default: the one that decides what is in distribution, entropy, and the three best)")
	s.bind(command)
	s.bindOutput(command)
	return command
}

// evaluation holds opened runs with the data to evaluate them on.
type evaluation struct {
	runs    []scoredRun
	in, out *datasets.Dataset
	device  tensor.Device
}

// check checks the flags that name data and the device.
func (s *scoreFlags) check() error {
	for _, name := range []struct{ flag, name string }{{"out", s.other}, {"data", s.data.Name}} {
		if name.name == "" {
			continue
		}
		if err := config.Check(name.flag, name.name, s.data.Dir); err != nil {
			return err
		}
	}
	return config.AsUsageError(s.device.Validate())
}

// withReference adds the run of --against to dirs, unless it is one of them.
func (s *scoreFlags) withReference(dirs []string) ([]string, error) {
	if s.against == "" || isFile(s.against) {
		return dirs, nil
	}
	i := among(dirs, s.against)
	if i < 0 {
		return append(dirs, s.against), nil
	}
	if len(dirs) == 1 {
		return nil, usage("pollen: --against must be another run than the one that is scored, got %s", s.against)
	}
	s.against = dirs[i] // the name of its row
	return dirs, nil
}

// open checks the flags and opens runs, data, out-of-distribution data if requested, and the
// device.
func (s *scoreFlags) open(ctx context.Context, dirs []string, c *console) (o evaluation, err error) {
	if err := s.check(); err != nil {
		return o, err
	}
	if dirs, err = s.withReference(dirs); err != nil {
		return o, err
	}
	options, err := s.guarantees.options()
	if err != nil {
		return o, err
	}
	options = append(options, bayes.WithObserver(c.observer("scores")), keepFeatures())
	for _, dir := range dirs {
		run, err := openRun(dir, s.withoutDamaged, c, options...)
		if err != nil {
			return o, err
		}
		o.runs = append(o.runs, scoredRun{name: dir, run: run})
	}
	data, err := s.testData(o.runs)
	if err != nil {
		return o, err
	}
	m := o.runs[0].run.Manifest()
	other, err := data.OOD(s.other, s.data.Classes, m.Data.ClassNames)
	if err != nil {
		return o, err
	}
	if o.in, err = loadTest(ctx, data, m, false, c); err != nil {
		return o, err
	}
	for _, r := range o.runs {
		remarkSeen(r.name, r.run, data, o.in, o.in.Hashes, testImages, c)
	}
	if s.other != "" {
		if o.out, err = loadTest(ctx, other, m, true, c); err != nil {
			return o, err
		}
		remarkKnown(o.out, m.Data.ClassNames, c)
		if o.out.Name == o.in.Name { // its held-out classes, or data from elsewhere
			o.out.Name = "other " + o.out.Name
		}
	}
	if o.device, err = s.device.open(c); err != nil {
		return o, err
	}
	for i := range o.runs {
		o.runs[i].run = o.runs[i].run.With(bayes.WithDevice(o.device))
	}
	return o, nil
}

// remarkKnown remarks on out-of-distribution data with classes that a run was trained on. Numbers
// stand for different classes in different data.
func remarkKnown(out *datasets.Dataset, known []string, c *console) {
	images, names := 0, []string{}
	for label, name := range out.ClassNames {
		if _, err := strconv.Atoi(name); err == nil || !slices.Contains(known, name) {
			continue
		}
		names = append(names, name)
		for _, of := range out.Labels {
			if int(of) == label {
				images++
			}
		}
	}
	if images > 0 {
		c.remark("%d of %s out of distribution have classes that the run was trained on, %s: --classes selects others",
			images, counted(out.Len(), "image"), strings.Join(names, ", "))
	}
}

// testData returns the runs' own data, or the data set of --data.
func (s *scoreFlags) testData(runs []scoredRun) (config.Data, error) {
	var names []string
	var own []config.Data
	var classes [][]string
	for _, r := range runs {
		m := r.run.Manifest()
		names, own, classes = append(names, r.name), append(own, config.DataOf(m)), append(classes, m.Data.ClassNames)
	}
	data, err := config.TestData(names, own, classes, s.data.Name)
	if err == nil && s.data.Label != "" && !data.Foreign && s.data.Label != data.Label {
		err = usage("pollen: --label of the run's own data must be %q, as in fit, got %q", data.Label, s.data.Label)
	}
	if err == nil && s.data.WithoutClasses != "" && !data.Foreign {
		err = usage("pollen: --without-classes needs --data, and other data than the run's own, whose classes it knows")
	}
	data.Label, data.WithoutClasses = cmp.Or(s.data.Label, data.Label), cmp.Or(s.data.WithoutClasses, data.WithoutClasses)
	data.MaxSkipped = cmp.Or(s.data.MaxSkipped, data.MaxSkipped)
	return data.In(s.data.Dir), err
}

// run scores runs, prints the tables and writes the page.
func (s *scoreFlags) run(ctx context.Context, dirs []string, c *console) error {
	if err := config.CheckPage(s.page); err != nil {
		return err
	}
	o, err := s.open(ctx, dirs, c)
	if err != nil {
		return err
	}
	defer o.device.Close()
	reference, err := s.readReference(o, c)
	if err != nil {
		return err
	}
	if err := assess(ctx, o.runs, o.in, o.out, c); err != nil {
		return err
	}
	for _, r := range o.runs {
		if calibration := r.assessment.Calibration; calibration != nil {
			if reason := calibration.AllClasses(evaluate.Level); reason != "" {
				c.remark("%s: %s", r.name, reason)
			}
		}
	}
	subjects := append(subjectsOf(o.runs, nil, nil), reference...)
	if s.json {
		err = printJSON(o.runs, subjects, s.against, c)
	} else {
		err = printScores(o.runs, subjects, s.against, s.every, c)
	}
	if err == nil && !s.json && s.other == "" {
		err = printByClass(subjects, c)
	}
	if err != nil {
		return err
	}
	return s.writePage(ctx, o, c)
}

// readReference describes the predictions in the file of --against, if it is a file.
func (s *scoreFlags) readReference(o evaluation, c *console) ([]report.Subject, error) {
	if !isFile(s.against) {
		return nil, nil
	}
	names := o.runs[0].run.Manifest().Data.ClassNames
	like := &evaluate.Predictions{Name: o.in.Name, Labels: labelsAmong(names, o.in), Classes: len(names)}
	reference, remark, err := report.ReadSubject(s.against, like, names, o.in.Files)
	if err != nil {
		return nil, err
	}
	if remark != "" {
		c.remark("%s", remark)
	}
	return []report.Subject{reference}, nil
}

// writePage writes the page into the directory of --page or, for a single run on its own data, into
// the run's.
func (s *scoreFlags) writePage(ctx context.Context, o evaluation, c *console) error {
	dir := s.page
	if dir == "" && len(o.runs) == 1 && s.data.Name == "" {
		dir = o.runs[0].run.Dir()
	}
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "pollen: page")
	}
	var sections []report.Section
	if first := o.runs[0]; len(o.runs) == 1 && s.data.Name == "" && len(first.run.Manifest().Parts) == 0 {
		text, command, err := advise(first, nil, o.in, 0)
		if err != nil {
			return err
		}
		sections = []report.Section{adviceSection(text, command)}
	}
	page, err := writePage(ctx, dir, o.runs, o.in, o.out, sections...)
	if s.page == "" && file.IsReadOnly(err) { // the scores are printed
		page, err = fmt.Sprintf("no page: %v; choose its directory with --page", err), nil
	}
	c.remark("%s", page)
	return err
}

// labelsAmong returns a data set's labels as numbers of the named classes, or nil if it has other
// classes, for which assess returns an error.
func labelsAmong(names []string, d *datasets.Dataset) []int32 {
	labels := make([]int32, len(d.Labels))
	for i, label := range d.Labels {
		class := slices.Index(names, d.ClassNames[label])
		if class < 0 {
			return nil
		}
		labels[i] = int32(class)
	}
	return labels
}

// isFile reports whether path exists and is not a directory.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
