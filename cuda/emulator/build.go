package emulator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/errors"
	"golang.org/x/sync/errgroup"
)

// The emulated GPU is a shared library that takes the place of NVIDIA's driver. It is built from
// three kinds of files, each compiled to a separate object:
//
//   - the emulator's sources, which run blocks and threads and keep their memory;
//   - the kernels, as unchanged CUDA C++, with a header that defines threadIdx, __syncthreads and
//     the like, and a few lines that register each kernel by its name;
//   - or, instead of the kernels, C++ that is translated from the committed PTX (translated.go).
//
// Objects are named by a digest of their inputs, so that a change recompiles only the objects that
// it affects, and all checkouts share one cache.

// RequireVariable names the environment variable that makes a missing C++ compiler a failure.
// Continuous integration sets it.
const RequireVariable = "POLLEN_REQUIRE_EMULATOR"

// LibraryVariable names the environment variable with the path of a library that Build made
// earlier, for test programs on a machine without the sources or a compiler.
const LibraryVariable = "POLLEN_EMULATOR"

// compilers lists the compilers that Build looks for, in order of preference.
var compilers = []string{"clang++-19", "clang++", "g++"}

// flags of every compilation: the compiler must not fuse or reorder arithmetic.
var flags = []string{"-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing", "-fvisibility=hidden",
	"-DPOLLEN_EMULATOR", "-Wno-unknown-pragmas", "-Wno-attributes"}

// Variable names the environment variable that selects the device of tests (package cudatest). If
// it is PTX, the emulated GPU runs the committed PTX, otherwise the kernels' sources.
const Variable = "POLLEN_TEST_DEVICE"

// PTX is Variable's value for the committed PTX.
const PTX = "ptx"

// Build compiles the driver with all kernels into a shared library and returns its path. Objects
// are cached in the user's cache directory. The test is skipped if there is no C++ compiler, and
// with -short. If LibraryVariable is set, Build returns its value.
func Build(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(LibraryVariable); path != "" {
		return path
	}
	findCompiler(t)
	path, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Library is like Build, for programs: it returns an error instead of skipping or failing a test.
func Library() (string, error) {
	compiler, why := lookCompiler()
	if compiler == "" {
		return "", errors.New("emulator: " + why)
	}
	places, err := lookDirs()
	if err != nil {
		return "", err
	}
	built.Do(func() { built.path, built.err = build(compiler, places, os.Getenv(Variable) == PTX) })
	return built.path, built.err
}

// BuildMutant is like Build, but introduces a mistake: in one file of the kernels' sources, all
// occurrences of from are replaced by to. Only sources that depend on the file are compiled.
func BuildMutant(t testing.TB, file, from, to string) string {
	t.Helper()
	compiler, places := findCompiler(t), dirs(t)
	// Every copy has the same base name, so that equal files are compiled once.
	copied := filepath.Join(t.TempDir(), filepath.Base(places[1]))
	if err := os.CopyFS(copied, os.DirFS(places[1])); err != nil {
		t.Fatal(err)
	}
	// The kernels include ../emulator/source/shim.h.
	emulator := filepath.Dir(places[0])
	if err := os.Symlink(emulator, filepath.Join(copied, "..", filepath.Base(emulator))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(copied, file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("there is no %q in %s", from, file)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o644); err != nil {
		t.Fatal(err)
	}
	library, err := build(compiler, [2]string{places[0], copied}, false)
	if err != nil {
		t.Fatal(err)
	}
	return library
}

// built caches Build's result for this process: looking for changes takes seconds.
var built struct {
	sync.Once
	path string
	err  error
}

// lookCompiler returns a compiler's path, or why there is none.
func lookCompiler() (path, why string) {
	if runtime.GOOS != "linux" {
		return "", "the emulator needs Linux"
	}
	for _, name := range compilers {
		if path, err := exec.LookPath(name); err == nil {
			return path, ""
		}
	}
	return "", fmt.Sprintf("the emulator needs a C++ compiler, one of %v", compilers)
}

// findCompiler returns a compiler's path. Without one it skips the test, or fails it if
// RequireVariable is set.
func findCompiler(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out the emulated GPU")
	}
	path, why := lookCompiler()
	if path != "" {
		return path
	}
	if os.Getenv(RequireVariable) != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// dirs returns the directories of the emulator's sources and of the kernels.
func dirs(t testing.TB) [2]string {
	t.Helper()
	places, err := lookDirs()
	if err != nil {
		t.Fatal(err)
	}
	return places
}

// lookDirs returns the directories of the emulator's sources and of the kernels, in this order.
func lookDirs() ([2]string, error) {
	dir := ownDir()
	own := filepath.Join(dir, "source")
	if _, err := os.Stat(filepath.Join(own, "shim.h")); err != nil {
		return [2]string{}, errors.Errorf("emulator: its sources were not found at %s; run it in a checkout", own)
	}
	return [2]string{own, filepath.Join(dir, "..", "kernels")}, nil
}

// ownDir returns this package's directory. A program that was built with -trimpath does not contain
// its path, and must run in a directory of the checkout, as tests do.
var ownDir = sync.OnceValue(func() string {
	const own = "cuda/emulator"
	_, file, _, _ := runtime.Caller(0)
	if filepath.IsAbs(file) {
		return filepath.Dir(file)
	}
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, own, "build.go")); missing == nil {
			return filepath.Join(dir, own)
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return own
})

// toolchain is a compiler, its flags, and a cache for its results.
type toolchain struct {
	compiler string
	flags    []string
	cache    string
}

// newToolchain returns a toolchain. Its cache directory depends on the compiler's version and the
// flags, so that objects made with different ones never mix.
func newToolchain(compiler string, flags ...string) (*toolchain, error) {
	version, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		return nil, errors.Wrap(err, "emulator: "+compiler)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	flags = append(flags, machineFlags()...)
	t := &toolchain{compiler: compiler, flags: flags, cache: filepath.Join(cache, "pollen-emulator", digest(version, []byte(strings.Join(flags, " "))))}
	return t, errors.Wrap(os.MkdirAll(t.cache, 0o755), "emulator")
}

// machineFlags enables the processor's fused multiply-add: the library function is slow.
func machineFlags() []string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil && runtime.GOARCH == "amd64" && bytes.Contains(info, []byte(" avx2 ")) && bytes.Contains(info, []byte(" fma ")) {
		return []string{"-mavx2", "-mfma"}
	}
	return nil
}

// digest returns a hash of some parts, with their lengths, so that no two lists of parts have the
// same text to hash.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d ", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// run runs the compiler and returns what it printed. The error contains its messages.
func (c *toolchain) run(arguments ...string) ([]byte, error) {
	command := exec.Command(c.compiler, arguments...)
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return nil, errors.Wrapf(err, "emulator: %s %s: %s", filepath.Base(c.compiler), strings.Join(arguments, " "), complaint.Bytes())
	}
	return out.Bytes(), nil
}

// compile compiles C++ text, whose headers are in the directories of include, to an object, unless
// the same text was compiled before, in this checkout or another.
func (c *toolchain) compile(include []string, name string, text []byte, flags []string) (string, error) {
	scratch, err := os.MkdirTemp(c.cache, "work")
	if err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	defer os.RemoveAll(scratch)
	source := filepath.Join(scratch, name+".cpp")
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	arguments := append(append(c.including(include), c.flags...), flags...)
	expanded, err := c.run(append(arguments, "-E", source)...)
	if err != nil {
		return "", err
	}
	// Without directory names, every checkout has the same text.
	expanded = bytes.ReplaceAll(expanded, []byte(scratch), nil)
	for _, dir := range include {
		expanded = bytes.ReplaceAll(expanded, []byte(dir), []byte(filepath.Base(dir)))
	}
	// A kernel's loops are unrolled for a GPU's registers; here unrolled loops compile slowly and
	// run no faster.
	expanded = unrollLine.ReplaceAll(expanded, nil)
	object := filepath.Join(c.cache, name+"-"+digest(expanded, []byte(strings.Join(flags, " ")))+".o")
	if _, err := os.Stat(object); err == nil {
		return object, nil
	}
	if err := os.WriteFile(source, expanded, 0o644); err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	// Renaming is atomic: a process that is killed leaves no part of an object under its name.
	made := filepath.Join(scratch, name+".o")
	if _, err := c.run(append(arguments, "-x", "c++-cpp-output", "-c", source, "-o", made)...); err != nil {
		return "", err
	}
	return object, errors.Wrap(os.Rename(made, object), "emulator")
}

// remembered returns the object that make returned when it was last called with the same file at
// path, the same headers and flags. Without it, every test program would spend seconds
// preprocessing all sources, only to find that they have not changed.
func (c *toolchain) remembered(path string, headers []byte, flags []string, make func() (string, error)) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "emulator")
	}
	note := filepath.Join(c.cache, stem(path)+"-"+digest(text, headers, []byte(strings.Join(flags, " ")))+".object")
	// A note that was cut short does not end in .o.
	if name, err := os.ReadFile(note); err == nil && filepath.Ext(string(name)) == ".o" {
		object := filepath.Join(c.cache, string(name))
		if _, err := os.Stat(object); err == nil {
			return object, nil
		}
	}
	object, err := make()
	if err != nil {
		return "", err
	}
	return object, errors.Wrap(os.WriteFile(note, []byte(filepath.Base(object)), 0o644), "emulator")
}

// headers returns a digest of all headers that a compilation with these directories can include,
// and of this file, which determines how a source is compiled.
func headers(include []string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(ownDir(), "build.go"))
	parts := [][]byte{text}
	for _, dir := range include {
		parts = append(parts, []byte(filepath.Base(dir)))
		for _, pattern := range []string{"*.h", "*.cuh", "*/*.h"} {
			paths, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are well-formed
			for _, path := range paths {
				if err == nil {
					text, err = os.ReadFile(path)
				}
				parts = append(parts, text)
			}
		}
	}
	return []byte(digest(parts...)), errors.Wrap(err, "emulator")
}

// including returns the flags for directories of headers.
func (c *toolchain) including(dirs []string) []string {
	var flags []string
	for _, dir := range dirs {
		flags = append(flags, "-I"+dir)
	}
	return flags
}

// unrollLine matches a pragma that asks the compiler to unroll a loop.
var unrollLine = regexp.MustCompile(`(?m)^#pragma unroll.*$`)

// kernelNames returns the kernels of a file, each with its maximum number of threads per block,
// from the preprocessed text.
func (c *toolchain) kernelNames(include []string, path string) ([][2]string, error) {
	arguments := append(append(c.including(include), c.flags...), "-x", "c++", "-E", "-P", "-DPOLLEN_LIST", path)
	text, err := c.run(arguments...)
	if err != nil {
		return nil, err
	}
	var names [][2]string
	for _, piece := range strings.Split(string(text), "POLLEN_KERNEL ")[1:] {
		declared, _, _ := strings.Cut(piece, "POLLEN_END")
		name, threads, _ := strings.Cut(strings.TrimSpace(declared), " ")
		names = append(names, [2]string{name, threads})
	}
	return names, nil
}

// wrapper returns C++ that includes a file of kernels and registers each of them.
func (c *toolchain) wrapper(include []string, path string) ([]byte, error) {
	names, err := c.kernelNames(include, path)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "#include %q\n#include \"register.h\"\n", filepath.Base(path))
	for i, name := range names {
		fmt.Fprintf(&text, "static pollen::Registered<%s> registered%d(%q, %s);\n", name[0], i, name[0], name[1])
	}
	return text.Bytes(), nil
}

// objects runs tasks that compile objects, one per processor at a time.
func objects(tasks []func() (string, error)) ([]string, error) {
	made := make([]string, len(tasks))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, task := range tasks {
		all.Go(func() (err error) {
			made[i], err = task()
			return err
		})
	}
	return made, all.Wait()
}

// sources returns tasks that compile the emulator's own files. All kernels spend their time in
// these files, so they are optimised more than the kernels.
func (c *toolchain) sources(include, paths, flags []string) ([]func() (string, error), error) {
	flags = append([]string{"-O2"}, flags...)
	return c.tasks(include, paths, flags, func(path string) (string, error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", errors.Wrap(err, "emulator")
		}
		return c.compile(include, stem(path), text, flags)
	})
}

// kernels returns tasks that compile files of kernels as C++, all of one directory.
func (c *toolchain) kernels(include, paths, flags []string) ([]func() (string, error), error) {
	include = append([]string{filepath.Dir(paths[0])}, include...)
	return c.tasks(include, paths, flags, func(path string) (string, error) {
		text, err := c.wrapper(include, path)
		if err != nil {
			return "", err
		}
		return c.compile(include, stem(path), text, flags)
	})
}

// tasks returns a task for each file, which compiles it if it or a header has changed.
func (c *toolchain) tasks(include, paths, flags []string, compile func(path string) (string, error)) (tasks []func() (string, error), err error) {
	headers, err := headers(include)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		tasks = append(tasks, func() (string, error) {
			return c.remembered(path, headers, flags, func() (string, error) { return compile(path) })
		})
	}
	return tasks, nil
}

// stem returns the name of a file without its extension.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) }

// files returns the files of a directory that match a pattern, sorted.
func files(dir, pattern string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	slices.Sort(found)
	if err == nil && len(found) == 0 {
		err = errors.Errorf("emulator: no %s in %s", pattern, dir)
	}
	return found, err
}

// build compiles what has changed, and links all objects to a library, whose path it returns.
func build(compiler string, dirs [2]string, fromPTX bool) (string, error) {
	c, err := newToolchain(compiler, flags...)
	if err != nil {
		return "", err
	}
	paths, err := files(dirs[0], "*.cpp")
	if err != nil {
		return "", err
	}
	// Compile the largest files first: otherwise the last of them keeps one processor busy while
	// the others idle.
	name := "libpollen-ptx"
	tasks, err := c.translated(dirs[0], fromPTX)
	if err != nil {
		return "", err
	}
	sources, err := c.sources(dirs[:], paths, nil)
	if err != nil {
		return "", err
	}
	tasks = append(tasks, sources...)
	if !fromPTX {
		name = "libpollen"
		code, err := files(dirs[1], "*.cu")
		if err != nil {
			return "", err
		}
		kernels, err := c.kernels(dirs[:], code, nil)
		if err != nil {
			return "", err
		}
		tasks = append(tasks, kernels...)
	}
	return c.linked(name, tasks, nil, "-shared")
}

// linked runs tasks that compile objects, and links these and others, while no other process does.
func (c *toolchain) linked(name string, tasks []func() (string, error), others []string, flags ...string) (string, error) {
	unlock, err := lock(filepath.Join(c.cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	made, err := objects(tasks)
	if err != nil {
		return "", err
	}
	return c.link(name, append(made, others...), flags...)
}

// link links objects into a library or a program. The objects' names identify their contents, so
// they also identify the result.
func (c *toolchain) link(name string, objects []string, flags ...string) (string, error) {
	path := filepath.Join(c.cache, name+"-"+digest([]byte(strings.Join(append(flags, objects...), "\n"))))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	made := path + ".new"
	if _, err := c.run(append(append([]string{"-pthread", "-o", made}, flags...), objects...)...); err != nil {
		return "", err
	}
	return path, errors.Wrap(os.Rename(made, path), "emulator")
}
