package command

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/serve"
	"github.com/pollen-ml/pollen/tensor"
)

// Exit codes. After a signal, interrupt.Stop has another one.
const (
	exitFailure     = 1
	exitUsage       = 2 // wrong command line or configuration
	exitDamaged     = 3 // a file of a run is damaged or missing
	exitLocked      = 4 // another process writes in the directory
	exitDiskFull    = 5 // stopped before the disk was full; the run can be resumed
	exitUnread      = 6 // predict could not read some of the images
	exitMemory      = 7 // more memory is needed than available, found before the work began
	exitInterrupted = 130
)

// exitCode reports a command's error, if any, and returns the program's exit code.
func exitCode(ctx context.Context, err error, command *cobra.Command, c *console) int {
	if err == nil {
		return 0
	}
	if stop := interrupt.Of(ctx); stop != nil || isCanceled(err) {
		if !isCanceled(err) {
			c.remark("%s", errorText(err))
		}
		c.remark("pollen: interrupted")
		if stop == nil {
			return exitInterrupted
		}
		return stop.ExitCode()
	}
	if server := (*serve.OptionError)(nil); errors.As(err, &server) {
		err = (*datasets.OptionError)(server)
	}
	err = config.NameFlag(err)
	var (
		mistake config.UsageError
		invalid *bayes.InvalidError
		damaged *bayes.DamagedError
		busy    *bayes.LockedError
		full    *bayes.DiskFullError
		unread  unreadError
	)
	switch {
	case errors.As(err, &mistake) || errors.As(err, &invalid):
		c.remark("%s\nSee --help.", errorText(err))
		return exitUsage
	case errors.As(err, &damaged):
		c.remark("%s", errorText(err))
		if command.Name() != "verify" {
			c.remark("Check the run with: pollen verify")
		}
		if f := command.Flags().Lookup("without-damaged"); f != nil && !f.Changed && canSkip(damaged.File) {
			c.remark("Skip it with: --without-damaged")
		}
		return exitDamaged
	}
	c.remark("%s", withFlags(err, command))
	var skipped *datasets.SkippedError
	if errors.As(err, &skipped) && skipped.Kept > 0 && command.Flags().Lookup("max-skipped") != nil {
		c.remark("Skip more with: --max-skipped")
	}
	switch {
	case isMemory(err):
		return exitMemory
	case errors.As(err, &busy):
		return exitLocked
	case errors.As(err, &full):
		return exitDiskFull
	case errors.As(err, &unread):
		return exitUnread
	}
	return exitFailure
}

// packages are the prefixes of errors, which name the package that they are from.
var packages = []string{
	"pollen", "approximate", "checksum", "cluster", "comparison", "cuda", "datasets", "detector", "devices", "diagnostics", "distributions", "evaluate",
	"export", "file", "graph", "kernel", "langevin", "layers", "llc", "mcmc", "onnx", "optimizers", "report", "samples", "serve", "tensor",
}

// errorText returns an error's text with a package named only at its beginning, although errors
// that wrap each other may name several. Only the beginnings of wrapped errors change: other text
// that looks like a package may be a path or what the user has written.
func errorText(err error) string {
	text, end := "", "" // the texts before and after the wrapped errors' texts
	for err != nil {
		begin, rest, inner := err.Error(), "", errors.Unwrap(err)
		if inner != nil {
			at := strings.LastIndex(begin, inner.Error())
			if at < 0 {
				inner = nil
			} else {
				begin, rest = begin[:at], begin[at+len(inner.Error()):]
			}
		}
		if name, after, is := strings.Cut(begin, ": "); is && text != "" && slices.Contains(packages, name) {
			begin = after
		}
		text, end, err = text+begin, rest+end, inner
	}
	return text + end
}

// isMemory reports whether there is too little memory, of the host or of a GPU.
func isMemory(err error) bool {
	return errors.As(err, new(*bayes.MemoryError)) || errors.As(err, new(*tensor.OutOfMemory)) || errors.As(err, new(*cuda.OutOfMemory))
}

// withFlags returns an error's text. Settings that a MemoryError advises become flags if the
// command has them.
func withFlags(err error, command *cobra.Command) string {
	text := errorText(err)
	var e *bayes.MemoryError
	if !errors.As(err, &e) {
		return text
	}
	for _, advice := range e.Advice {
		if name, _, _ := strings.Cut(advice, " "); command.Flags().Lookup(name) != nil {
			text = strings.Replace(text, advice, "--"+advice, 1)
		}
	}
	return text
}

// canSkip reports whether --without-damaged skips a file of a run: a sample, a state that samples
// are drawn from, the index, the calibration or the detector.
func canSkip(file string) bool {
	return slices.Contains([]string{"samples", "states"}, filepath.Base(filepath.Dir(file))) ||
		slices.Contains([]string{"index.jsonl", "calibration.json", "detector.json"}, filepath.Base(file))
}

// isCanceled reports whether the user stopped a run.
func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
