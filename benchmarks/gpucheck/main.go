package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const usage = `usage: gpucheck pack [--emulated] FILE.tar.xz    build the check into an archive, or into a directory
       gpucheck first [flags] OUT              check correctness, and time every call
       gpucheck speed [flags] OUT              time the same work in PyTorch and JAX, and scaling
`

// calls are the calls by name, with their time limits.
var calls = map[string]struct {
	seconds int
	plan    func(*runner)
}{
	"first": {200, firstLight},
	"speed": {480, speed},
}

func main() { os.Exit(run(os.Args[1:])) }

// run returns the exit status.
func run(arguments []string) int {
	if len(arguments) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	name := arguments[0]
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	emulated := flags.Bool("emulated", false, "use the emulated GPU")
	call, isCall := calls[name]
	var o options
	if isCall {
		flags.IntVar(&o.seconds, "seconds", call.seconds, "the time limit of the whole call")
		flags.StringVar(&o.only, "only", "", "the checks to run, separated by commas; all if empty")
		flags.StringVar(&o.python, "python", "python3", "the Python that has PyTorch and JAX")
	} else if name != "pack" {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	flags.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments[1:]); err != nil || flags.NArg() != 1 || isCall && o.seconds < 1 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	if !isCall {
		if err := pack(flags.Arg(0), *emulated); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	o.call, o.emulated = name, *emulated
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := newRunner(o, filepath.Dir(program), flags.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return r.run(call.plan)
}
