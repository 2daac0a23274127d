package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/emulator"
)

//go:embed emulated-samplers.txt
var emulatedSamplers string

// samplerTests returns a regular expression of the samplers' statistical tests that the emulated
// GPU runs in minutes.
func samplerTests() string { return strings.TrimSpace(emulatedSamplers) }

const module = "github.com/pollen-ml/pollen/"

// programs are built as they are; each test package is built into a test program.
var (
	programs        = []string{"cmd/pollen", "benchmarks", "benchmarks/gpucheck"}
	samplerPackages = []string{"langevin", "mcmc", "approximate", "diagnostics", "samples"}
	testPackages    = append([]string{"cuda"}, samplerPackages...)
)

// pack builds the check into an archive, or into a directory if the name does not end in .tar.xz.
func pack(to string, emulated bool) error {
	name, isArchive := strings.CutSuffix(filepath.Base(to), ".tar.xz")
	if !isArchive {
		return packInto(to, emulated)
	}
	// Fail early: the archive's directory may be missing, or not writable.
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	work, err := os.MkdirTemp("", "gpucheck")
	if err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	defer os.RemoveAll(work)
	dir := filepath.Join(work, name)
	if err := packInto(dir, emulated); err != nil {
		return err
	}
	if err := archive(dir, to); err != nil {
		return err
	}
	info, err := os.Stat(to)
	if err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	fmt.Printf("%s: %.1f MB; there: tar xJf %s && %s/gpucheck first OUT\n", to, float64(info.Size())/1e6, filepath.Base(to), name)
	return nil
}

// archive makes an archive NAME.tar.xz of a directory, which is called NAME in it.
func archive(dir, to string) error {
	name := strings.TrimSuffix(filepath.Base(to), ".tar.xz")
	// The programs share most of their bytes, at distances that only a large dictionary covers.
	const compressor = "xz -T1 --lzma2=preset=0,dict=128MiB,mf=hc4,depth=2,nice=32"
	command := exec.Command("tar", "-I", compressor, "-cf", to, "-C", dir, "--transform", "s,^\\.,"+name+",", ".")
	out, err := command.CombinedOutput()
	return errors.Wrapf(err, "gpucheck: tar: %s", out)
}

// packInto builds everything into a directory.
func packInto(dir string, emulated bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	for _, name := range programs {
		if err := buildProgram(filepath.Join(dir, filepath.Base(name)), name); err != nil {
			return err
		}
	}
	for _, name := range testPackages {
		if err := goTool("test", "-c", "-ldflags", "-s -w", "-o", filepath.Join(dir, name+".test"), module+name); err != nil {
			return err
		}
		if err := packTestdata(dir, name); err != nil {
			return err
		}
	}
	if emulated {
		if err := packEmulator(filepath.Join(dir, "libemulator.so")); err != nil {
			return err
		}
	}
	return errors.Wrap(os.WriteFile(filepath.Join(dir, "revision"), []byte(revision()+"\n"), 0o644), "gpucheck")
}

// revision returns the commit that is packed, with "+" if files have changed since, or "unknown"
// without git.
func revision() string {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(head))
	if status, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err != nil || len(status) > 0 {
		commit += "+"
	}
	return commit
}

// buildProgram builds a program with its commit recorded, whatever the go command's settings are:
// git is not available where it runs.
func buildProgram(to, name string) error {
	return goTool("build", "-buildvcs=auto", "-ldflags", "-s -w", "-o", to, module+name)
}

// packEmulator copies the emulated GPU's driver, built for this machine.
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

// goTool runs the go command for 64-bit Linux, without a C compiler.
func goTool(arguments ...string) error {
	command := exec.Command("go", arguments...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	return errors.Wrapf(command.Run(), "gpucheck: go %v", arguments)
}

// packTestdata copies a package's test data to the directory that its tests run in.
func packTestdata(dir, name string) error {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", module+name).Output()
	if err != nil {
		return errors.Wrapf(err, "gpucheck: go list %s", name)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), "testdata")
	if _, err := os.Stat(from); err != nil {
		return os.MkdirAll(filepath.Join(dir, name), 0o755)
	}
	to := filepath.Join(dir, name, "testdata")
	if err := os.RemoveAll(to); err != nil {
		return errors.Wrap(err, "gpucheck")
	}
	return errors.Wrap(os.CopyFS(to, os.DirFS(from)), "gpucheck")
}
