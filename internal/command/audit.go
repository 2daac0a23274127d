package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
)

func auditCommand(c *console) *cobra.Command {
	var settings diagnostics.Audit
	command := &cobra.Command{
		Use:   "audit",
		Short: "Compute the temperature at which a sampler's settings sample",
		Long: `A sampler targets exp(-U/T), where U is the potential of the posterior; T = 1 is the posterior itself. A program's update

    theta <- theta - rate (gradient of the loss + weight decay * theta) + noise * xi,    xi ~ N(0, 1),

determines the step size h, the factor of the gradient of U, and the temperature T = noise^2/(2h).
Without flags, prints the settings of published programs.

Conventions for the loss:
  mean-loss    mean over a batch
  sum-loss     sum over all data
  batch-sum    sum over a batch
  welling-teh  sum over all data; the rate is epsilon, half of which multiplies the gradient`,
		Example: `  pollen audit
  pollen audit --rate 0.01 --noise 0.001414 --data-size 60000 --weight-decay 1e-5`,
		Args: noArguments,
	}
	f := command.Flags()
	bindAudit(f, &settings)
	command.RunE = func(*cobra.Command, []string) error {
		if f.NFlag() == 0 {
			return printPublished(c)
		}
		if !f.Changed("rate") || !f.Changed("noise") || !f.Changed("data-size") {
			return usage("pollen: audit needs --rate, --noise and --data-size, or no flags for the published settings")
		}
		if err := settings.Validate(); err != nil {
			return config.AsUsageError(err)
		}
		printAudit(settings, c)
		return nil
	}
	return command
}

// bindAudit binds the flags that describe a program's update.
func bindAudit(f *pflag.FlagSet, settings *diagnostics.Audit) {
	names := strings.Trim(fmt.Sprint(diagnostics.StepConventions()), "[]")
	f.Float64Var(&settings.Rate, "rate", 0, "learning rate; epsilon with welling-teh")
	f.Float64Var(&settings.Noise, "noise", 0, "standard deviation of the noise that a step adds to each parameter")
	f.IntVar(&settings.DataSize, "data-size", 0, "number N of examples in the data set")
	f.StringVar((*string)(&settings.Convention), "convention", string(diagnostics.MeanLoss), "what the loss sums or averages: "+names)
	f.IntVar(&settings.BatchSize, "batch", 0, "examples per minibatch; batch-sum only")
	f.Float64Var(&settings.WeightDecay, "weight-decay", 0, "factor of theta next to the gradient")
}

// printAudit prints the step size, temperature and prior of the settings, with an explanation.
func printAudit(settings diagnostics.Audit, c *console) {
	h, temperature, prior := settings.StepSize(), settings.Temperature(), settings.Prior()
	std := "flat: no weight decay"
	if prior != langevin.Flat() {
		std = fmt.Sprintf("%.4g", prior.Scale)
	}
	fmt.Fprintf(c.out, "step size h      %.4g, a learning rate of %.4g on the mean loss\n", h, h*float64(settings.DataSize))
	fmt.Fprintf(c.out, "temperature T    %.4g\n", temperature)
	fmt.Fprintf(c.out, "prior std        %s\n", std)
	fmt.Fprintf(c.out, "noise for T = 1  %.4g\n", settings.NoiseFor(1))
	fmt.Fprintln(c.out, settings.Verdict())
}

// printPublished prints the table of published programs.
func printPublished(c *console) error {
	table := report.NewTable("program", report.Column{Title: "N", Format: "%.0f"}, report.Column{Title: "convention"},
		report.Column{Title: "rate", Format: "%.4g"}, report.Column{Title: "noise", Format: "%.4g"},
		report.Column{Title: "step size h", Format: "%.4g"}, report.Column{Title: "prior std", Format: "%.4g"},
		report.Column{Title: "temperature T", Format: "%.5g"})
	for _, p := range diagnostics.PublishedSettings() {
		var std any = "-"
		if prior := p.Settings.Prior(); prior != langevin.Flat() {
			std = prior.Scale
		}
		err := table.Add(p.Code, float64(p.Settings.DataSize), string(p.Settings.Convention), p.Settings.Rate, p.Settings.Noise,
			p.Settings.StepSize(), std, p.Settings.Temperature())
		if err != nil {
			return err
		}
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	fmt.Fprintln(c.out, "T = 1 is the posterior. The prior's standard deviation follows from the weight decay. Sources:")
	for _, p := range diagnostics.PublishedSettings() {
		fmt.Fprintf(c.out, "  %s: %s\n", p.Code, p.Source)
	}
	return nil
}
