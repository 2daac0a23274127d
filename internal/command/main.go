package command

import (
	"context"
	"os"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
)

// Main runs the command line and returns the exit code of the process.
func Main() int { return run(os.Args[1:], newConsole()) }

// usage is the error of a mistake on the command line or in a configuration.
func usage(format string, values ...any) error { return config.Usagef(format, values...) }

// run does what the arguments request, and returns the exit code.
func run(arguments []string, c *console) int {
	ctx, release := interrupt.Context()
	defer release()
	root := rootCommand(c)
	root.SetArgs(arguments)
	root.SetOut(c.out)
	root.SetErr(c.err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = c.out.Err
	}
	return exitCode(ctx, err, command, c)
}

// stopped reports whether a run ended at the user's request.
func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }

func rootCommand(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:   "pollen",
		Short: "Bayesian convolutional networks: trained on your pictures, and asked what they do not know",
		Long: `Without a command: trains a network on MNIST with SGD, SGLD, pSGLD and SGNHT, shows all four digits and letters,
and prints who knows what it does not know. Results go to stdout, progress to stderr; figures, samples and
report.html to the run folder.

The first Ctrl-C, SIGTERM, SIGUSR1 or SIGUSR2 ends a run so that it can go on later; the second ends the program at once.
Exit codes: 0 done; 1 a failure; 2 a command line that makes no sense; 3 a file is damaged or missing; 4 another process
writes in the folder; 5 stopped before the disk was full; 128 and a signal's number: stopped by it (130 Ctrl-C, 143 SIGTERM,
138 SIGUSR1, 140 SIGUSR2).`,
		Example: `  pollen                                       the whole comparison, in a few minutes
  pollen fit --data flowers --model cnn         one network on a folder of pictures
  pollen fit --method psgld --chains 4          one network on digits, four Markov chains
  pollen --resume runs/main-1                   go on where the comparison was stopped
  pollen fit --resume runs/fit-1                go on where one run was stopped
  pollen verify runs/fit-1                      is every file what was written?
  pollen eval runs/fit-1                        accuracy and calibration of the posterior average
  pollen ood runs/fit-1 --out notmnist          does it know that letters are not digits?
  pollen predict runs/fit-1 picture.png         class, how sure, what else is plausible, familiar or not`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	job := defaultMainJob()
	job.bind(root.Flags())
	root.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		return usage("pollen: no command %q; there are %s", arguments[0], strings.Join(commandNames(root), ", "))
	}
	root.RunE = func(command *cobra.Command, _ []string) error { return job.run(command.Context(), command.Flags(), c) }
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, command := range []func(*console) *cobra.Command{
		fitCommand, evalCommand, oodCommand, predictCommand, serveCommand, attackCommand, corruptCommand, auditCommand, verifyCommand, devicesCommand, datasetsCommand,
		submitCommand, statusCommand, gatherCommand,
	} {
		root.AddCommand(command(c))
	}
	for _, command := range append(root.Commands(), root) {
		command.Flags().SortFlags = false
	}
	return root
}

func commandNames(root *cobra.Command) []string {
	var names []string
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return names
}

// noArguments refuses arguments that are not flags.
func noArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	return usage("pollen: %s takes flags only, got %q", command.Name(), arguments[0])
}

// flagError explains what is wrong with a flag: unknown (and which exist), or what it takes.
func flagError(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		var names []string
		command.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		return usage("pollen: %v; there are %s", err, strings.Join(names, ", "))
	case errors.As(err, &invalid):
		return usage("pollen: --%s %q, wants %s", invalid.GetFlag().Name, invalid.GetValue(), config.TypeName(invalid.GetFlag()))
	default:
		return usage("pollen: %v", err)
	}
}
