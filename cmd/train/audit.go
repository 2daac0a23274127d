package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
)

// auditFlags are the settings of a published program. Those not given are nil.
type auditFlags struct {
	rate, noise, weightDecay *float64
	dataSize, batch          *int
	convention               string
}

func auditCommand(c *console) *cobra.Command {
	var flags auditFlags
	command := &cobra.Command{
		Use:   "audit",
		Short: "compute the temperature that published settings sample at",
		Long: `Samplers target exp(-U/T), U the potential of the posterior. From what a program does in a step,
    theta <- theta - rate (gradient of the loss + weight decay * theta) + noise * xi,    xi ~ N(0, 1),
follow the step size h, which multiplies the gradient of U, and the temperature T = noise^2/(2h).
T = 1 is the posterior. Without flags: the settings of published programs.

Conventions: mean-loss, the loss is the mean over a batch; sum-loss, the sum over all data; batch-sum, the sum over
a batch; welling-teh, the sum over all data, and the rate is epsilon, of which half multiplies the gradient.`,
		Example: `  train audit
  train audit --rate 0.01 --noise 0.001414 --data-size 60000 --weight-decay 1e-5`,
		Args: noArguments,
	}
	flags.bind(command.Flags())
	command.RunE = func(command *cobra.Command, _ []string) error {
		if command.Flags().NFlag() == 0 {
			return printPublished(c)
		}
		settings, err := flags.settings()
		if err != nil {
			return err
		}
		printAudit(settings, c)
		return nil
	}
	return command
}

func (a *auditFlags) bind(f *pflag.FlagSet) {
	names := make([]string, 0, len(diagnostics.StepConventions()))
	for _, convention := range diagnostics.StepConventions() {
		names = append(names, string(convention))
	}
	optional(f, &a.rate, "float", parseFloat, "rate", "learning rate, or epsilon")
	optional(f, &a.noise, "float", parseFloat, "noise", "standard deviation of the noise a step adds to each parameter")
	optional(f, &a.dataSize, "int", strconv.Atoi, "data-size", "examples in the data set, N")
	f.StringVar(&a.convention, "convention", string(diagnostics.MeanLoss), "what the rate multiplies: "+strings.Join(names, ", "))
	optional(f, &a.batch, "int", strconv.Atoi, "batch", "examples per minibatch (batch-sum only)")
	optional(f, &a.weightDecay, "float", parseFloat, "weight-decay", "what multiplies theta beside the gradient (default 0)")
}

func (a *auditFlags) settings() (diagnostics.Audit, error) {
	if a.rate == nil || a.noise == nil || a.dataSize == nil {
		return diagnostics.Audit{}, usage("train: audit wants --rate, --noise and --data-size, or no flags for the published settings")
	}
	settings := diagnostics.Audit{Rate: *a.rate, Noise: *a.noise, DataSize: *a.dataSize, Convention: diagnostics.StepConvention(a.convention)}
	if a.batch != nil {
		settings.BatchSize = *a.batch
	}
	if a.weightDecay != nil {
		settings.WeightDecay = *a.weightDecay
	}
	return settings, config.AsMistake(settings.Validate())
}

// printAudit prints what settings amount to, and explains it.
func printAudit(settings diagnostics.Audit, c *console) {
	h, temperature, prior := settings.StepSize(), settings.Temperature(), settings.Prior()
	deviation := "flat: no weight decay"
	if prior != langevin.Flat() {
		deviation = fmt.Sprintf("%.4g", prior.Scale)
	}
	fmt.Fprintf(c.out, "step size h      %.4g, a learning rate of %.4g on the mean loss\n", h, h*float64(settings.DataSize))
	fmt.Fprintf(c.out, "temperature T    %.4g\n", temperature)
	fmt.Fprintf(c.out, "prior deviation  %s\n", deviation)
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
		var deviation any = "-"
		if prior := p.Settings.Prior(); prior != langevin.Flat() {
			deviation = prior.Scale
		}
		err := table.Add(p.Code, float64(p.Settings.DataSize), string(p.Settings.Convention), p.Settings.Rate, p.Settings.Noise,
			p.Settings.StepSize(), deviation, p.Settings.Temperature())
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

// optionalValue is a flag that distinguishes absence from any value.
type optionalValue[T any] struct {
	to    **T
	parse func(string) (T, error)
	kind  string
}

func optional[T any](f *pflag.FlagSet, to **T, kind string, parse func(string) (T, error), name, usage string) {
	f.Var(optionalValue[T]{to, parse, kind}, name, usage)
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

func (v optionalValue[T]) String() string {
	if v.to == nil || *v.to == nil {
		return ""
	}
	return fmt.Sprint(**v.to)
}

func (v optionalValue[T]) Set(s string) error {
	value, err := v.parse(s)
	*v.to = &value
	return err
}

func (v optionalValue[T]) Type() string { return v.kind }
