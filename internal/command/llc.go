package command

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/report"
)

// llcFlags are the flags of llc.
type llcFlags struct {
	options         llc.Options
	sample, method  string
	figure, dataDir string
	json            bool
	withoutDamaged  bool
	device          deviceFlags
}

func llcCommand(c *console) *cobra.Command {
	var l llcFlags
	command := &cobra.Command{
		Use: "llc RUN", Short: "Estimate the local learning coefficient of a run's network",
		Long: `Estimates the local learning coefficient at a sample w* of a run, lambda = N beta (E[L(w)] - L(w*)), from chains that
sample the tempered posterior exp(-N beta L(w) - gamma/2 |w - w*|^2) on the training images, with beta = 1/log N. L is the
mean cross-entropy, without prior, augmentation and dropout.

The table has a row for each step size epsilon, as Lau et al. (2023) and devinterp define it:

  lambda    the estimate, without the energy that finite steps add, and its 95 % interval from the spread of the chains
  raw       the estimate with that energy, as other programs report it
  T loss    raw/lambda: the temperature of the directions that the loss depends on; 1 for small steps
  T         the temperature of all weights; below 1 while they still spread, above it if steps heat them
  R-hat     below 1.05 where chains agree
  trend     of lambda, from the first half of the steps after burn-in to the second
  gamma     derivative of lambda with respect to log gamma, if it is clearly not 0: how much the localization matters
  verdict   ok, or hot, moving, imprecise, not flat (neighbours differ), unchecked (no neighbour to compare), below w* (which
            is no minimum), diverged

The last lines are the verdict and, if something can be improved, the command to run next. docs/llc.md explains them.

Without --step-sizes, the table ends where further rows cannot change the verdict. Ctrl-C prints what has been estimated
so far, which is never accepted. RUN/llc keeps each step size that is complete, and the same command continues after
them. The time grows with --chains, --steps, and --batch or the number of images.`,
		Example: "  pollen llc runs/fit-1\n  pollen llc runs/fit-1 --descent 20000 --gamma 10\n" +
			"  pollen llc runs/fit-1 --step-sizes 1e-6,5e-7 --steps 8000 --figure llc.png",
		Args: requireRun,
		RunE: func(command *cobra.Command, arguments []string) error {
			return l.run(command.Context(), arguments[0], c)
		},
	}
	f, o := command.Flags(), &l.options
	f.StringVar(&l.sample, "sample", "", "file name of the sample that is w* (default: the last of the first chain)")
	f.Float64Var(&o.Localization, "gamma", 100, "precision of the Gaussian around w*")
	f.Float64Var(&o.InverseTemperature, "beta", 0, "inverse temperature (default 1/log N)")
	f.Float64SliceVar(&o.StepSizes, "step-sizes", nil, "step `sizes` epsilon, separated by commas (default: up to five, by the curvature of the loss)")
	f.Lookup("step-sizes").DefValue = ""
	f.StringVar(&l.method, "method", "sgld", "sampler; the energy that steps add is measured only for sgld")
	f.IntVar(&o.Batch, "batch", 0, "images per minibatch (default 100, or all of at most 200)")
	f.IntVar(&o.Chains, "chains", 8, "chains of each step size, which all begin at w*")
	f.IntVar(&o.Steps, "steps", 2000, "steps of each chain")
	f.IntVar(&o.BurnIn, "burn-in-steps", 0, "steps of each chain that are discarded as burn-in (default: half)")
	f.IntVar(&o.Descent, "descent", 0, "move w* first, by this number of steps of gradient descent, to a minimum")
	f.IntVar(&o.Reference, "reference", 0, "also estimate by NUTS on all images, with this many draws per chain after as many warm-up draws (default: none)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the chains")
	f.StringVar(&l.figure, "figure", "", "file for a figure of the traces of the loss, .png or .svg")
	f.BoolVar(&l.json, "json", false, "print the estimate as JSON")
	config.BindDataDir(f, &l.dataDir)
	l.device.bind(f)
	bindWithoutDamaged(f, &l.withoutDamaged)
	return command
}

func (l *llcFlags) run(ctx context.Context, dir string, c *console) error {
	if l.figure != "" && !strings.HasSuffix(l.figure, ".png") && !strings.HasSuffix(l.figure, ".svg") {
		return usage("pollen: --figure must end in .png or .svg, got %s", l.figure)
	}
	method, err := bayes.ParseMethod(l.method)
	if err != nil {
		return config.AsUsageError(err)
	}
	sampler, ok := method.(langevin.Sampler)
	if !ok {
		return usage("pollen: --method must be a sampler on minibatches, such as sgld, got %s", l.method)
	}
	l.options.Sampler = sampler
	run, err := openRun(dir, l.withoutDamaged, c, bayes.WithObserver(c.observer("llc")))
	if err != nil {
		return err
	}
	splits, err := openData(ctx, config.DataOf(run.Manifest()).In(l.dataDir), c)
	if err != nil {
		return err
	}
	device, err := l.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	e, err := run.With(bayes.WithDevice(device)).LearningCoefficient(ctx, splits.Train, l.sample, l.options)
	c.endProgress()
	if e == nil {
		if ctx.Err() != nil {
			c.remark("llc: nothing has been estimated yet: it takes %d steps after burn-in at the first step size; fewer --steps or --chains take less time",
				llc.MinMeasured)
		}
		return err
	}
	// If err is not nil, the estimate was interrupted, and the rows so far are shown.
	return cmp.Or(l.show(e, dir, c), err)
}

// show draws the figure, and prints the estimate.
func (l *llcFlags) show(e *llc.Estimation, dir string, c *console) error {
	if l.figure != "" {
		if err := drawTraces(e, l.figure); err != nil {
			return err
		}
	}
	if l.json {
		return l.printJSON(e, dir, c)
	}
	return l.print(e, dir, c)
}

// print prints the table, the verdict and the next command.
func (l *llcFlags) print(e *llc.Estimation, dir string, c *console) error {
	fmt.Fprintf(c.out, "N = %d, %d weights, beta = %.4f, gamma = %g, L(w*) = %.5f, minibatches of %d, %d chains of %d steps, %d of them burn-in\n\n",
		e.Examples, e.Weights, e.InverseTemperature, e.Localization, e.Loss, e.Batch, e.Chains, e.Steps, e.BurnIn)
	table, err := llcTable(e)
	if err != nil {
		return err
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	verdict := e.Verdict()
	state := "not accepted: "
	if verdict.Accepted {
		state = "accepted: "
	}
	fmt.Fprintf(c.out, "\n%s%s.\n", state, verdict.Text)
	if next := l.next(e, dir); next != "" {
		fmt.Fprintf(c.out, "next: pollen %s\n", next)
	}
	return nil
}

// llcTable returns the table of an estimate, a row for each step size.
func llcTable(e *llc.Estimation) (*report.Table, error) {
	var columns []report.Column
	for _, title := range []string{"lambda", "95 % interval", "raw", "T loss", "T", "R-hat", "trend", "gamma", "verdict"} {
		columns = append(columns, report.Column{Title: title})
	}
	table := report.NewTable("step size", columns...)
	problems := e.Problems()
	for i, r := range e.Rows {
		if err := addLLCRow(table, fmt.Sprintf("%.2g", r.StepSize), r, string(problems[i])); err != nil {
			return nil, err
		}
	}
	if e.Reference != nil {
		if err := addLLCRow(table, "NUTS, all data", *e.Reference, "reference"); err != nil {
			return nil, err
		}
	}
	return table, nil
}

func addLLCRow(table *report.Table, name string, r llc.Row, verdict string) error {
	if r.Diverged {
		return table.Add(name, "-", "-", "-", "-", "-", "-", "-", "-", verdict)
	}
	number := func(v diagnostics.Number) string { return report.OrDash("%.4g", v) }
	low, high := r.Lambda.Interval()
	return table.Add(name, number(r.Lambda.Value), fmt.Sprintf("%.4g to %.4g", low, high), number(r.Raw.Value),
		report.OrDash("%.3f", r.LossTemperature()), report.OrDash("%.3f", r.Temperature.Value),
		report.OrDash("%.3f", r.RHat), report.OrDash("%+.2g", r.Trend.Value),
		clearly(r.Localization), verdict)
}

// clearly returns an estimate, or "unclear" if its 95 % interval includes 0.
func clearly(m diagnostics.Measured) string {
	if low, high := m.Interval(); low <= 0 && high >= 0 {
		return "unclear"
	}
	return report.OrDash("%+.2g", m.Value)
}

// next returns the command, without the program, that makes the change an estimate's verdict
// proposes; "" if there is none.
func (l *llcFlags) next(e *llc.Estimation, dir string) string {
	change := e.Verdict().Next
	if change.Steps == 0 && change.Descent == 0 && change.StepSizes == nil && change.Localization == 0 {
		return ""
	}
	o := l.options
	o.Localization = cmp.Or(change.Localization, o.Localization)
	o.Steps = cmp.Or(change.Steps, e.Steps)
	if change.StepSizes != nil {
		o.StepSizes = change.StepSizes
	}
	if change.Descent > 0 {
		o.Descent = max(change.Descent, 4*o.Descent)
	}
	var stepSizes []string
	for _, step := range o.StepSizes {
		stepSizes = append(stepSizes, strconv.FormatFloat(step, 'g', 3, 64))
	}
	command := "llc " + config.Quoted(dir)
	for _, flag := range []struct {
		name  string
		value any
		given bool
	}{
		{"sample", config.Quoted(l.sample), l.sample != ""},
		{"gamma", o.Localization, true},
		{"beta", o.InverseTemperature, o.InverseTemperature != 0},
		{"step-sizes", strings.Join(stepSizes, ","), o.StepSizes != nil},
		{"method", config.Quoted(l.method), l.method != "sgld"},
		{"batch", o.Batch, o.Batch > 0},
		{"chains", o.Chains, true},
		{"steps", o.Steps, true},
		{"burn-in-steps", o.BurnIn * o.Steps / e.Steps, o.BurnIn > 0}, // the same fraction of the steps
		{"descent", o.Descent, o.Descent > 0},
		{"reference", o.Reference, o.Reference > 0},
		{"seed", o.Seed, o.Seed != 1},
		{"data-folder", config.Quoted(l.dataDir), l.dataDir != ""},
	} {
		if flag.given {
			command += fmt.Sprintf(" --%s %v", flag.name, flag.value)
		}
	}
	if l.withoutDamaged {
		command += " --without-damaged"
	}
	return command
}

// printJSON prints the estimate with its verdict.
func (l *llcFlags) printJSON(e *llc.Estimation, dir string, c *console) error {
	verdict := e.Verdict()
	low, high := verdict.Lambda.Interval()
	return c.json(struct {
		*llc.Estimation
		Problems []llc.Problem        `json:"problems"` // by row
		Accepted bool                 `json:"accepted"`
		Verdict  string               `json:"verdict"`
		Lambda   diagnostics.Number   `json:"lambda"`
		Interval []diagnostics.Number `json:"interval"`
		Next     string               `json:"next,omitempty"` // command, without the program
	}{e, e.Problems(), verdict.Accepted, verdict.Text, verdict.Lambda.Value,
		[]diagnostics.Number{diagnostics.Number(low), diagnostics.Number(high)}, l.next(e, dir)})
}

// drawTraces draws the mean over chains of N beta (L(w) - L(w*)) against the step.
func drawTraces(e *llc.Estimation, path string) error {
	var curves []report.Curve
	for i, r := range e.Rows {
		if steps, values := e.MeanTrace(i); steps != nil {
			curves = append(curves, report.Curve{Method: fmt.Sprintf("step size %.2g", r.StepSize), X: steps, Y: values})
		}
	}
	if len(curves) == 0 {
		return errors.New("pollen: --figure: all chains diverged: there are no traces to draw")
	}
	axes := report.Axes{X: "step", Y: "N beta (L(w) - L(w*)), mean of chains"}
	if v := e.Verdict(); v.Accepted {
		axes.Target, axes.TargetName = float64(v.Lambda.Value), "lambda"
	}
	figure, err := report.Curves(axes, curves)
	if err != nil {
		return err
	}
	draw := figure.PNG
	if strings.HasSuffix(path, ".svg") {
		draw = figure.SVG
	}
	content, err := draw()
	if err != nil {
		return err
	}
	return errors.Wrap(file.Write(path, content), "pollen: --figure")
}
