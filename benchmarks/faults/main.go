package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/interrupt"
)

var (
	whole = sizes{kills: 200, flips: 5000, calls: 1 << 30, samples: 10_000, repeats: 5, seed: 1}
	short = sizes{kills: 4, flips: 150, calls: 12, samples: 0, repeats: 0, seed: 1}
)

// stage is one kind of fault.
type stage struct {
	name string
	run  func(h *harness) error
}

var stages = []stage{
	{"kills", kills}, {"flips", flips}, {"disks", disks}, {"full", fullDisk}, {"readonly", readOnly}, {"writers", writers}, {"many", many}, {"cost", cost},
}

func main() {
	s := whole
	flag.IntVar(&s.kills, "kills", s.kills, "processes to kill")
	flag.IntVar(&s.flips, "flips", s.flips, "bits to flip")
	flag.StringVar(&s.victims, "victims", "", "methods to kill, as swag,bbb (default: all)")
	flag.IntVar(&s.repeats, "repeats", s.repeats, "measurements of the cost")
	flag.Uint64Var(&s.seed, "seed", s.seed, "seed of the moments and the bits; use another one for each part")
	work := flag.String("work", "", "directory in which a new one for the runs is made and kept (default: a temporary one)")
	flag.Parse()
	ctx, release := interrupt.Context()
	defer release()
	if err := run(ctx, s, *work, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// newWork makes a directory within work or, if that is "", within the directory of temporary files.
// Its path is absolute, since the processes run there.
func newWork(work string) (dir string, err error) {
	if work != "" {
		if work, err = filepath.Abs(work); err == nil {
			err = os.MkdirAll(work, 0o755)
		}
	}
	if err == nil {
		dir, err = os.MkdirTemp(work, "faults")
	}
	return dir, errors.Wrap(err, "faults")
}

func run(ctx context.Context, s sizes, work string, names []string) (err error) {
	for _, name := range names {
		if !slices.ContainsFunc(stages, func(s stage) bool { return s.name == name }) {
			return errors.Errorf("faults: there is no stage %q; see go doc ./benchmarks/faults", name)
		}
	}
	temporary := work == ""
	if work, err = newWork(work); err != nil {
		return err
	}
	if temporary {
		defer os.RemoveAll(work)
	}
	h := &harness{sizes: s, ctx: ctx, work: work, report: func(format string, values ...any) { fmt.Printf(format+"\n", values...) }}
	if err := h.build(); err != nil {
		return err
	}
	for _, stage := range stages {
		if len(names) > 0 && !slices.Contains(names, stage.name) || ctx.Err() != nil {
			continue
		}
		h.report("== %s", stage.name)
		if err := stage.run(h); err != nil {
			return errors.WithMessage(err, stage.name)
		}
	}
	if len(h.failures) > 0 {
		return errors.Errorf("%d failures:\n%s", len(h.failures), strings.Join(h.failures, "\n"))
	}
	if ctx.Err() != nil {
		return errors.New("stopped: everything tried until then held")
	}
	h.report("all held")
	return nil
}
