package command

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/internal/nearest"
)

// Main runs the command line and returns the process's exit code.
func Main() int { return run(os.Args[1:], newConsole()) }

// run executes the command that the arguments name and returns the exit code.
func run(arguments []string, c *console) int {
	ctx, release := interrupt.Context()
	defer release()
	memory.Govern(ctx)
	root := rootCommand(c)
	root.SetArgs(arguments)
	root.SetOut(c.out)
	root.SetErr(c.err)
	command, err := repeatedFlag(root, arguments)
	if err == nil {
		command, err = root.ExecuteContextC(ctx)
	}
	if err == nil {
		err = c.out.Err
	}
	return exitCode(ctx, err, command, c)
}

func rootCommand(c *console) *cobra.Command {
	root := &cobra.Command{
		Use:   "pollen",
		Short: "Train Bayesian convolutional networks and evaluate them in and out of distribution",
		Long: `Pollen samples the weights of convolutional networks from their posterior, with stochastic-gradient Markov chain
Monte Carlo and other methods, and evaluates the posterior predictive: accuracy, calibration, out-of-distribution detection.

Without a command it compares four methods: it trains a network on MNIST with SGD, SGLD, pSGLD and SGNHT, and scores
all four on digits and on letters, which are out of distribution. Results go to stdout, progress to stderr; figures,
samples and report.html go to the run directory.

The first Ctrl-C, SIGHUP, SIGTERM, SIGUSR1 or SIGUSR2 stops a run so that --resume can continue it; the second ends the
program at once.

Exit codes:
  0        success
  1        failure
  2        wrong command line or configuration
  3        a file of a run is damaged or missing
  4        another process writes in the run directory
  5        stopped before the disk was full
  6        predict could not read some of the images, and answered the others
  7        more memory is needed than available; found before the work began
  128 + n  stopped by signal n: 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM, 138 SIGUSR1, 140 SIGUSR2`,
		Example: `  pollen                                   # compare four methods on MNIST, in a few minutes
  pollen fit --data flowers --model cnn    # train on a directory of images, flowers/CLASS/*.jpg
  pollen fit --method psgld --chains 4     # sample four Markov chains of a network on MNIST
  pollen fit --resume runs/fit-1           # continue a run that was stopped
  pollen eval runs/fit-1                   # accuracy and calibration of the posterior predictive
  pollen ood runs/fit-1 --out notmnist     # are letters detected as out of distribution?
  pollen calibrate runs/fit-1 --data new   # guarantees for images of another camera
  pollen predict runs/fit-1 image.png      # class, confidence and conformal prediction set of an image`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	job := defaultMainJob()
	job.bind(root.Flags())
	addVersion(root)
	names := addCommands(root, c)
	root.Args = func(_ *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		return usage("pollen: no command %q; %s", arguments[0], nearest.Among(arguments[0], names))
	}
	root.RunE = func(command *cobra.Command, _ []string) error { return job.run(command.Context(), command.Flags(), c) }
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if command == root {
			if unknown := root.Args(root, root.Flags().Args()); unknown != nil { // the flag may be one of the command that was meant
				return unknown
			}
		}
		return config.FlagError(command.Flags(), err)
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, command := range append(root.Commands(), root) {
		command.Flags().SortFlags = false
	}
	return root
}

// addCommands adds all commands to root, and returns their names.
func addCommands(root *cobra.Command, c *console) (names []string) {
	for _, group := range []struct {
		title    string
		commands []func(*console) *cobra.Command
	}{
		{"Train and predict:", []func(*console) *cobra.Command{fitCommand, distilCommand, calibrateCommand, predictCommand, serveCommand}},
		{"Evaluate:", []func(*console) *cobra.Command{evalCommand, oodCommand, attackCommand, corruptCommand, llcCommand, auditCommand}},
		{"Runs and clusters:", []func(*console) *cobra.Command{statusCommand, verifyCommand, gatherCommand, submitCommand, exportCommand}},
		{"Environment:", []func(*console) *cobra.Command{devicesCommand, datasetsCommand}},
	} {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, make := range group.commands {
			command := make(c)
			command.GroupID = group.title
			root.AddCommand(command)
			names = append(names, command.Name())
		}
	}
	return names
}
