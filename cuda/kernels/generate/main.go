// Command generate compiles CUDA kernels to PTX with clang, without NVIDIA's toolkit:
//
//	go run github.com/pollen-ml/pollen/cuda/kernels/generate mish.cu    writes mish.ptx next to it
//	go run ./cuda/kernels/generate -print matmul_sm80                   Pollen's own PTX, as text
//
// A source may include the headers of Pollen's own sources. Without arguments it compiles all
// sources of the current directory. In the directory of Pollen's own sources the PTX goes into
// one file, kernels.ptx.gz.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/pollen-ml/pollen/cuda/kernels/bundle"
)

// compiler is the only version whose output is committed.
const compiler = "clang-19"

// target is what a source is compiled for, selected by the suffix of its name.
type target struct{ suffix, architecture, ptx string }

var targets = []target{
	{"_sm90", "sm_90a", "+ptx80"},
	{"_sm80", "sm_80", "+ptx78"},
	{"", "sm_70", "+ptx78"},
}

func main() {
	name := flag.String("print", "", "print this file of Pollen's own PTX, and compile nothing")
	flag.Parse()
	if err := run(*name, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kernelsDir returns the directory of package kernels, which has the headers. A program that was
// built with -trimpath does not contain its path, and asks the go command where the module is.
func kernelsDir() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(filepath.Dir(file))
	if !filepath.IsAbs(file) {
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/pollen-ml/pollen").Output()
		if err != nil {
			return "", fmt.Errorf("generate: go list does not find Pollen's module: %w", err)
		}
		dir = filepath.Join(strings.TrimSpace(string(root)), "cuda", "kernels")
	}
	if _, err := os.Stat(filepath.Join(dir, "pollen.cuh")); err != nil {
		return "", fmt.Errorf("generate: its headers were not found: %w", err)
	}
	return dir, nil
}

func run(name string, sources []string) error {
	headers, err := kernelsDir()
	if err != nil {
		return err
	}
	own := filepath.Join(headers, "kernels.ptx.gz")
	if name != "" {
		return show(own, name)
	}
	all := len(sources) == 0
	if all {
		var err error
		if sources, err = filepath.Glob("*.cu"); err != nil || len(sources) == 0 {
			return fmt.Errorf("generate: no .cu files in this directory (%v)", err)
		}
	}
	results, files := make([]error, len(sources)), make([]bundle.File, len(sources))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for i, source := range sources {
		group.Go(func() {
			slots <- struct{}{}
			files[i], results[i] = compile(headers, source)
			<-slots
		})
	}
	group.Wait()
	var failed error
	for _, err := range results {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = fmt.Errorf("generate: some kernels do not compile")
		}
	}
	if failed != nil {
		return failed
	}
	var bundled []bundle.File
	for i, f := range files {
		if same(filepath.Dir(sources[i]), headers) {
			bundled = append(bundled, f)
		} else if err := os.WriteFile(strings.TrimSuffix(sources[i], ".cu")+".ptx", []byte(f.Text), 0o644); err != nil {
			return err
		}
	}
	if len(bundled) == 0 {
		return nil
	}
	return save(own, bundled, all)
}

// same reports whether two paths are the same directory.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// show prints a file of Pollen's own PTX.
func show(own, name string) error {
	files, err := read(own)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range files {
		stem := strings.TrimSuffix(f.Name, ".ptx")
		if name == stem || name == f.Name {
			_, err := os.Stdout.WriteString(f.Text)
			return err
		}
		names = append(names, stem)
	}
	return fmt.Errorf("generate: there is no %s; the files are %s", name, strings.Join(names, " "))
}

func read(own string) ([]bundle.File, error) {
	content, err := os.ReadFile(own)
	if err != nil {
		return nil, err
	}
	return bundle.Read(content)
}

// save writes Pollen's own PTX: all files, or replacements of some of them.
func save(own string, files []bundle.File, all bool) error {
	if !all {
		before, err := read(own)
		if err != nil {
			return fmt.Errorf("generate: reading the file failed, so compile all sources: %w", err)
		}
		for _, f := range before {
			if !slices.ContainsFunc(files, func(new bundle.File) bool { return new.Name == f.Name }) {
				files = append(files, f)
			}
		}
	}
	return bundle.Write(own, files)
}

// compile returns a source's PTX.
func compile(headers, source string) (bundle.File, error) {
	var none bundle.File
	stem, found := strings.CutSuffix(source, ".cu")
	if !found {
		return none, fmt.Errorf("generate: %s is not a .cu file", source)
	}
	var to target
	for _, to = range targets {
		if strings.HasSuffix(stem, to.suffix) {
			break
		}
	}
	// -ffp-contract=off: products and sums are rounded one by one, as on the host; fused
	// multiply-adds are explicit.
	command := exec.Command(compiler, "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch="+to.architecture, "-Xclang", "-target-feature", "-Xclang", to.ptx,
		"-nocudainc", "-nocudalib", "-O3", "-S", "-std=c++17", "-ffp-contract=off", "-Wall", "-Werror", "-I"+headers, source, "-o", "-")
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return none, fmt.Errorf("generate: %s: %w: %s", source, err, complaint.Bytes())
	}
	name := filepath.Base(stem)
	var text strings.Builder
	text.WriteString(bundle.FirstLine(name))
	for _, line := range strings.Split(out.String(), "\n") {
		line, _, _ = strings.Cut(line, "//")
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			text.WriteString(line + "\n")
		}
	}
	return bundle.File{Name: name + ".ptx", Text: text.String()}, nil
}
