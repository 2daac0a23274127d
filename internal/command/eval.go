package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// compared is one of the runs that are compared.
type scoredRun struct {
	name       string
	run        *pollen.Run
	assessment *evaluate.Assessment // nil before assess
}

// scoring are the flags of the commands that score runs.
type scoreFlags struct {
	data   config.Data
	device deviceFlags

	other, page, against string
	json, withoutDamaged bool
}

func (s *scoreFlags) bind(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&s.data.Name, "data", "", "data whose test images are predicted (default: those of the data trained on)")
	config.BindDataDir(f, &s.data.Dir)
	s.device.bind(f)
	bindWithoutDamaged(f, &s.withoutDamaged)
}

// bindOutput binds the output flags.
func (s *scoreFlags) bindOutput(command *cobra.Command) {
	command.Flags().StringVar(&s.page, "page", "", "folder for the page and figures (default: the run's; none of several runs, or of other data)")
	command.Flags().BoolVar(&s.json, "json", false, "print the scores as JSON")
}

func evalCommand(c *console) *cobra.Command {
	var s scoreFlags
	command := &cobra.Command{
		Use: "eval RUN...", Short: "score the posterior averages of runs on test data",
		Long: "Averages the probabilities of all samples of each run and scores them on the test images of a data set. Of runs that\n" +
			"differ in nothing but their seed it also prints means and standard errors.",
		Example: "  pollen eval runs/main-1/sgd runs/main-1/sgld\n  pollen eval runs/fit-1 --data flowers-of-last-year\n" +
			"  pollen eval runs/sgld runs/auto --against runs/hmc",
		Args: requireRuns,
		RunE: func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, c) },
	}
	command.Flags().StringVar(&s.against, "against", "", "what predictions are compared with: the folder of a run, such as one of hmc, or a file with a line of\n"+
		"probabilities for each test image")
	s.bind(command)
	s.bindOutput(command)
	return command
}

func oodCommand(c *console) *cobra.Command {
	var s scoreFlags
	command := &cobra.Command{
		Use: "ood RUN...", Short: "measure how well runs know data of another kind from their own",
		Long: "Scores each run as eval does, and measures how well the entropy of its averaged probabilities separates its own kind of\n" +
			"data from another kind, which it has not been trained on.",
		Example: "  pollen ood runs/main-1/sgd runs/main-1/sgld\n  pollen ood runs/fit-1 --out notmnist\n" +
			"  pollen ood runs/signs --out signs      the kinds that were held out by --without-classes",
		Args: requireRuns,
		RunE: func(command *cobra.Command, runs []string) error { return s.run(command.Context(), runs, c) },
	}
	command.Flags().StringVar(&s.other, "out", "glyphs", "data of the other kind: a name, or a folder or file of one's own")
	command.Flags().StringVar(&s.data.Classes, "classes", "", "show only these classes of the other kind (default: all; of the data trained on, those held out)")
	s.bind(command)
	s.bindOutput(command)
	return command
}

func requireRuns(command *cobra.Command, runs []string) error {
	if len(runs) == 0 {
		return usage("pollen: %s wants the folder of at least one run", command.Name())
	}
	for i, run := range runs {
		if slices.ContainsFunc(runs[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(run) }) {
			return usage("pollen: %s is there twice", run)
		}
	}
	return nil
}

// opened are runs with the data to evaluate them on.
type evaluation struct {
	runs    []scoredRun
	in, out *datasets.Dataset
	device  tensor.Device
}

// open checks the flags and prepares the device, the runs' kind of data, and any other kind.
func (s *scoreFlags) open(ctx context.Context, dirs []string, c *console) (o evaluation, err error) {
	for _, name := range []struct{ flag, name string }{{"out", s.other}, {"data", s.data.Name}} {
		if name.name == "" {
			continue
		}
		if err := config.Check(name.flag, name.name, s.data.Dir); err != nil {
			return o, err
		}
	}
	if err := config.AsUsageError(s.device.Validate()); err != nil {
		return o, err
	}
	if len(dirs) == 1 && dirs[0] == s.against {
		return o, usage("pollen: --against %s: it is the run that is scored, wants another one", s.against)
	}
	if s.against != "" && !isFile(s.against) && !slices.Contains(dirs, s.against) {
		dirs = append(dirs, s.against)
	}
	for _, dir := range dirs {
		run, err := pollen.Open(dir, append(withoutDamagedIf(s.withoutDamaged), pollen.WithObserver(c.observer("scores")))...)
		if err != nil {
			return o, err
		}
		if err := remarkUnfinished(run, c); err != nil {
			return o, err
		}
		o.runs = append(o.runs, scoredRun{name: dir, run: run})
	}
	kind, err := s.kind(o.runs)
	if err != nil {
		return o, err
	}
	m := o.runs[0].run.Manifest()
	other, err := kind.OOD(s.other, s.data.Classes, m.Data.ClassNames)
	if err != nil {
		return o, err
	}
	if o.in, err = loadTest(ctx, kind, m, false, c); err != nil {
		return o, err
	}
	for _, r := range o.runs {
		if config.FilesChanged(r.run.Manifest(), kind, o.in.Hashes) {
			c.remark("%s is not as %s was trained on: it may have been trained on some of what are test images now", o.in.Name, r.name)
		}
	}
	if s.other != "" {
		if o.out, err = loadTest(ctx, other, m, true, c); err != nil {
			return o, err
		}
		if o.out.Name == o.in.Name { // its other classes, or data from elsewhere
			o.out.Name = "other " + o.out.Name
		}
	}
	if o.device, err = s.device.open(c); err != nil {
		return o, err
	}
	for i := range o.runs {
		o.runs[i].run = o.runs[i].run.With(pollen.WithDevice(o.device))
	}
	return o, nil
}

// remarkUnfinished warns of a run that failed, or has not drawn all its samples.
func remarkUnfinished(run *pollen.Run, c *console) error {
	if p, err := run.Progress(); err == nil && p.State == pollen.Failed { // an error may be of what an average does not need
		c.remark("%s failed, and what it has is averaged, %s of %d: %s", run.Dir(), counted(p.Samples, "sample"), p.Expected, p.Error)
		return nil
	}
	finished, err := run.Finished()
	if err != nil || finished {
		return err
	}
	files, err := run.Samples()
	c.remark("%s was not finished: it has %s by now", run.Dir(), counted(len(files), "sample"))
	return err
}

// kind is the runs' own kind of data, unless another is given.
func (s *scoreFlags) kind(runs []scoredRun) (config.Data, error) {
	var names []string
	var own []config.Data
	for _, r := range runs {
		names, own = append(names, r.name), append(own, config.DataOf(r.run.Manifest()))
	}
	kind, err := config.TestData(names, own, s.data.Name)
	return kind.In(s.data.Dir), err
}

// run scores runs, and how they tell apart another data set, if any.
func (s *scoreFlags) run(ctx context.Context, dirs []string, c *console) error {
	if err := config.CheckPage(s.page); err != nil {
		return err
	}
	o, err := s.open(ctx, dirs, c)
	if err != nil {
		return err
	}
	defer o.device.Close()
	var others []report.Subject
	if isFile(s.against) {
		like := &evaluate.Predictions{Name: o.in.Name, Labels: o.in.Labels, Classes: len(o.runs[0].run.Manifest().Data.ClassNames)}
		other, err := report.ReadSubject(s.against, like)
		if err != nil {
			return err
		}
		others = append(others, other)
	}
	if err := assess(ctx, o.runs, o.in, o.out, c); err != nil {
		return err
	}
	subjects := append(subjectsOf(o.runs, nil, nil), others...)
	print := printScores
	if s.json {
		print = printJSON
	}
	if err := print(o.runs, subjects, s.against, c); err != nil {
		return err
	}
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
	page, err := writePage(dir, o.runs, o.in, o.out)
	c.remark("%s", page)
	return err
}

// assess scores each run.
func assess(ctx context.Context, runs []scoredRun, in, out *datasets.Dataset, c *console) error {
	defer c.endProgress()
	for i := range runs {
		var err error
		if runs[i].assessment, err = runs[i].run.Assess(ctx, in, out); err != nil {
			return err
		}
	}
	return nil
}

// printScores prints the tables of scores.
func printScores(runs []scoredRun, subjects []report.Subject, against string, c *console) error {
	var made []*report.Table
	for _, make := range []func() (*report.Table, error){
		func() (*report.Table, error) { return scoreTable(subjects) },
		func() (*report.Table, error) { return report.SeedsTable(subjects) },
		func() (*report.Table, error) { return report.DetectionTable(subjects) },
		func() (*report.Table, error) { return report.AgreementTable(subjects, against) },
	} {
		table, err := make()
		if err != nil {
			return err
		}
		made = append(made, table)
	}
	if err := printTables(c, made...); err != nil {
		return err
	}
	for _, r := range runs {
		if left := r.run.LeftOut(); len(left) > 0 {
			fmt.Fprintf(c.out, "%s: without %s, damaged or missing: %s\n", r.name, counted(len(left), "sample"), strings.Join(left, ", "))
		}
	}
	return nil
}

// printTables prints the tables that are not nil.
func printTables(c *console, tables ...*report.Table) error {
	tables = slices.DeleteFunc(tables, func(t *report.Table) bool { return t == nil })
	for i, table := range tables {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		if err := table.WriteText(c.out); err != nil {
			return err
		}
	}
	return nil
}

// fewRuns is how many runs have a column each in the table of scores; more have a row each.
const fewRuns = 4

// scoreTable is the table of scores.
func scoreTable(subjects []report.Subject) (*report.Table, error) {
	if len(subjects) <= fewRuns {
		return report.ScoreTable(subjects)
	}
	return report.RunTable(subjects)
}

// printJSON prints an object for each run.
func printJSON(runs []scoredRun, subjects []report.Subject, against string, c *console) error {
	near, err := report.Agreements(subjects, against)
	if err != nil {
		return err
	}
	type scored struct {
		Run    string               `json:"run"`
		Method string               `json:"method"`
		Scores *evaluate.Assessment `json:"assessment"`
		Near   *evaluate.Comparison `json:"against,omitempty"` // the run of --against

		LeftOut   []string           `json:"leftOut,omitempty"` // samples that are damaged or missing
		Continued []pollen.Continued `json:"continued,omitempty"`
	}
	list := []scored{}
	for _, r := range runs {
		m := r.run.Manifest()
		list = append(list, scored{r.name, pollen.MethodText(m.Spec.Method), r.assessment, near[r.name], r.run.LeftOut(), m.Continued})
	}
	lines := json.NewEncoder(c.out)
	lines.SetIndent("", "  ")
	return errors.Wrap(lines.Encode(list), "pollen: json")
}

// isFile is false for a folder, and for what is not there.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
