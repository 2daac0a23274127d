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
		Short: "compute the temperature that published settings sample at",
		Long: `Samplers target exp(-U/T), U the potential of the posterior. From what a program does in a step,
    theta <- theta - rate (gradient of the loss + weight decay * theta) + noise * xi,    xi ~ N(0, 1),
follow the step size h, which multiplies the gradient of U, and the temperature T = noise^2/(2h).
T = 1 is the posterior. Without flags: the settings of published programs.

Conventions: mean-loss, the loss is the mean over a batch; sum-loss, the sum over all data; batch-sum, the sum over
a batch; welling-teh, the sum over all data, and the rate is epsilon, of which half multiplies the gradient.`,
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
			return usage("pollen: audit wants --rate, --noise and --data-size, or no flags for the published settings")
		}
		if err := settings.Validate(); err != nil {
			return config.AsUsageError(err)
		}
		printAudit(settings, c)
		return nil
	}
	return command
}

// bindAudit binds the settings of a program.
func bindAudit(f *pflag.FlagSet, settings *diagnostics.Audit) {
	names := strings.Trim(fmt.Sprint(diagnostics.StepConventions()), "[]")
	f.Float64Var(&settings.Rate, "rate", 0, "learning rate, or epsilon")
	f.Float64Var(&settings.Noise, "noise", 0, "standard deviation of the noise a step adds to each parameter")
	f.IntVar(&settings.DataSize, "data-size", 0, "examples in the data set, N")
	f.StringVar((*string)(&settings.Convention), "convention", string(diagnostics.MeanLoss), "what the rate multiplies, of "+names)
	f.IntVar(&settings.BatchSize, "batch", 0, "examples per minibatch (batch-sum only)")
	f.Float64Var(&settings.WeightDecay, "weight-decay", 0, "what multiplies theta beside the gradient")
}

// printAudit prints what settings amount to, and explains it.
func printAudit(settings diagnostics.Audit, c *console) {
	h, temperature, prior := settings.StepSize(), settings.Temperature(), settings.Prior()
	std := "flat: no weight decay"
	if prior != langevin.Flat() {
		std = fmt.Sprintf("%.4g", prior.Scale)
	}
	fmt.Fprintf(c.out, "step size h      %.4g, a learning rate of %.4g on the mean loss\n", h, h*float64(settings.DataSize))
	fmt.Fprintf(c.out, "temperature T    %.4g\n", temperature)
	fmt.Fprintf(c.out, "prior deviation  %s\n", std)
	fmt.Fprintf(c.out, "noise for T = 1  %.4g\n", settings.NoiseFor(1))
	fmt.Fprintln(c.out, settings.Verdict())
}

// printPublished prints what published programs amount to.
func printPublished(c *console) error {
	table := report.NewTable("program", report.Column{Title: "N", Format: "%.0f"}, report.Column{Title: "convention"},
		report.Column{Title: "rate", Format: "%.4g"}, report.Column{Title: "noise", Format: "%.4g"},
		report.Column{Title: "step size h", Format: "%.4g"}, report.Column{Title: "prior deviation", Format: "%.4g"},
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
	fmt.Fprintln(c.out, "T = 1 is the posterior. The prior's deviation is that which weight decay implies. Sources:")
	for _, p := range diagnostics.PublishedSettings() {
		fmt.Fprintf(c.out, "  %s: %s\n", p.Code, p.Source)
	}
	return nil
}
