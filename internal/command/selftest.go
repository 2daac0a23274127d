package command

import (
	"fmt"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
)

// printSelfTest prints how many strange images a calibrated run rejects, or why it makes no
// decisions about what is in distribution.
func printSelfTest(run *bayes.Run, c *console) error {
	calibration, err := run.Calibration()
	if os.IsNotExist(errors.Cause(err)) {
		return nil // runFit has reported that no images are held out
	}
	if err != nil {
		return err
	}
	switch test := calibration.SelfTest; {
	case test != nil:
		fmt.Fprintf(c.out, "Test of in-distribution decisions: the run %v.\n\n", test)
	case calibration.Nonconformity == nil:
		fmt.Fprintf(c.out, "The run has no detector of strange images, and makes no in-distribution decisions.\n\n")
	case !calibration.Supports(evaluate.Level):
		fmt.Fprintf(c.out, "In-distribution decisions at a rate of %g need at least %d held-out images, got %d: hold out more with --validation.\n\n",
			evaluate.Level, evaluate.NeededExamples(evaluate.Level), calibration.Examples)
	}
	return nil
}
