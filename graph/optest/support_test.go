package optest

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

var updateDocs = flag.Bool("update", false, "write docs/ops.md instead of comparing it")

// support has the facts about one op that the rows of the suite show.
type support struct {
	name     string // as in op.ReLU
	synopsis string
	inputs   string          // the types of its inputs
	fuses    map[string]bool // names of the consumers whose work it can do
	rowTiles bool            // the host can run its launches a few rows at a time
	rows     int             // of the suite, in which it is the op under test or part of the graph
	gradient map[string]bool // how its gradient is tested
	forward  map[string]bool // the kernels of its output, without the type's suffix
	backward map[string]bool // the kernels of its gradients
	zero     bool            // it is a graph.StopGradient
	missing  map[string]bool // kernels that the PTX bundle does not have, which is an error
	reduced  map[string]bool // precisions with kernels on tensor cores
}

// TestSupportTable compares docs/ops.md with what the suite's rows and the PTX bundle show.
func TestSupportTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "ops.md")
	want := supportPage(t)
	if *updateDocs {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/ops.md is out of date: run go test ./graph/optest -run TestSupportTable -update")
	}
}

// surveyOps compiles every row and returns the ops of both packages, in order of their names.
func surveyOps(t *testing.T) []*support {
	t.Helper()
	ops := map[string]*support{}
	for _, dir := range []string{"op", "op/array"} {
		for name, synopsis := range synopses(t, filepath.Join("..", dir)) {
			ops[name] = &support{
				name: name, synopsis: synopsis, fuses: map[string]bool{}, gradient: map[string]bool{},
				forward: map[string]bool{}, backward: map[string]bool{}, missing: map[string]bool{}, reduced: map[string]bool{},
			}
		}
	}
	entries := kernelEntries(t)
	values := map[graph.Op]bool{} // every op that the rows apply, gradients among them
	cases := Cases()
	for i := range cases {
		c := &cases[i]
		b := graph.New(tensor.Float32)
		apply(c, b, c.inputs(b))
		seen := map[string]bool{}
		for _, a := range b.Applications() {
			values[a.Op] = true
			if s := ops[opName(a.Op)]; s != nil && !seen[s.name] {
				seen[s.name] = true
				s.rows++
			}
		}
		if s := ops[opName(c.Op)]; s != nil && c.Build == nil {
			s.observe(t, c, entries)
		}
		if !c.NoGradient {
			for _, op := range gradientOps(t, c) {
				values[op] = true
			}
		}
	}
	for op := range values {
		if fuser, ok := op.(graph.Fuser); ok && ops[opName(op)] != nil {
			for consumer := range values {
				if _, fuses := fuser.Fuse(consumer); fuses {
					ops[opName(op)].fuses[consumer.Name()] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(ops), func(a, b *support) int {
		return cmp.Or(strings.Compare(packageOf(a.name), packageOf(b.name)), strings.Compare(a.name, b.name))
	})
}

// observe adds the inputs, kernels and gradient of a row that applies only this op.
func (s *support) observe(t *testing.T, c *Case, entries map[string]bool) {
	t.Helper()
	var inputs []string
	for _, in := range c.Inputs {
		switch {
		case in.isHeader():
			inputs = append(inputs, "header")
		case in.isFloat():
			inputs = append(inputs, "float")
		default:
			inputs = append(inputs, in.DType.String())
		}
	}
	s.inputs = strings.Join(inputs, ", ")
	_, s.zero = c.Op.(graph.StopGradient)
	switch {
	case c.NoGradient:
	case c.Gradient != nil:
		s.gradient["formula"] = true
	case !c.Speed:
		s.gradient["finite differences"] = true
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, launch := range launchesOf(t, c, dtype, true) {
			s.rowTiles = s.rowTiles || launch.Host.RowTile.Rows > 0
			s.note(s.forward, launch, dtype, entries)
		}
		if c.NoGradient {
			continue
		}
		for _, launch := range launchesOf(t, c, dtype, false) {
			s.note(s.backward, launch, dtype, entries)
		}
	}
}

// note adds the kernels of a launch's calls. Package cuda chooses the kernel of a product or a
// convolution by the size of its tiles: matmul_f32 stands for matmul_64x64_f32 and others.
func (s *support) note(stems map[string]bool, launch tensor.Launch, dtype tensor.DType, entries map[string]bool) {
	for _, call := range launch.Calls {
		stem := strings.TrimSuffix(call.Kernel, "_"+dtype.Suffix())
		if stem == "count_step" {
			continue // the end of every step
		}
		stems[stem] = true
		tile := regexp.MustCompile("^" + stem + `_\d+x\d+_(\w+)$`)
		found := entries[call.Kernel]
		for name := range entries {
			if m := tile.FindStringSubmatch(name); m != nil {
				found = found || m[1] == dtype.Suffix()
				if m[1] == "tf32" || m[1] == "bf16" {
					s.reduced[m[1]] = true
				}
			}
		}
		if !found {
			s.missing[call.Kernel] = true
		}
	}
}

// launchesOf returns the launches of a row's output, or of its gradients.
func launchesOf(t *testing.T, c *Case, dtype tensor.DType, output bool) []tensor.Launch {
	t.Helper()
	compiled, err := c.compile(dtype, output, !output)
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return compiled.launches()
}

// apply builds the graph of a row.
func apply(c *Case, b *graph.Builder, nodes []*graph.Node) *graph.Node {
	if c.Build != nil {
		return c.Build(b, nodes)
	}
	return b.Apply(c.Op, nodes...)
}

// gradientOps returns the ops that a row's gradients apply.
func gradientOps(t *testing.T, c *Case) (all []graph.Op) {
	t.Helper()
	b := graph.New(tensor.Float32)
	nodes := c.inputs(b)
	y := apply(c, b, nodes)
	s := &compiledCase{c: c, dtype: tensor.Float32, shape: graph.ShapeOf(y)}
	s.differentiate(b, nodes, y)
	if err := b.Err(); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	for _, a := range b.Applications() {
		all = append(all, a.Op)
	}
	return all
}

// kernelEntries returns the names of all kernels in the PTX bundle.
func kernelEntries(t *testing.T) map[string]bool {
	t.Helper()
	files, err := kernels.Files()
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]bool{}
	for _, file := range files {
		for _, entry := range file.Entries {
			entries[entry.Name] = true
		}
	}
	return entries
}

// synopses returns the first sentence of the doc comment of each exported op of a directory.
func synopses(t *testing.T, dir string) map[string]string {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	page, err := doc.NewFromFiles(set, files, dir)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, typ := range page.Types {
		comments[filepath.Base(dir)+"."+typ.Name] = typ.Doc
	}
	ops := map[string]string{}
	for _, name := range opsOf(t, dir) {
		ops[name] = firstSentence(comments[name])
	}
	return ops
}

// firstSentence returns the part of a doc comment before its first colon or full stop: shapes and
// formulas, which follow a colon, do not fit into a table's cell.
func firstSentence(comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	end := len(text)
	for _, mark := range []string{": ", ". ", "; "} {
		if at := strings.Index(text, mark); at >= 0 {
			end = min(end, at)
		}
	}
	_, text, _ = strings.Cut(text[:end], " ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	return strings.TrimSuffix(strings.ReplaceAll(text, "|", `\|`), ".")
}

func opName(op graph.Op) string {
	if op == nil {
		return ""
	}
	typ := reflect.TypeOf(op)
	return typ.PkgPath()[strings.LastIndex(typ.PkgPath(), "/")+1:] + "." + typ.Name()
}

func packageOf(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return map[string]string{"op": "1", "array": "2"}[before]
}

// supportPage returns the content of docs/ops.md.
func supportPage(t *testing.T) []byte {
	t.Helper()
	ops := surveyOps(t)
	var page bytes.Buffer
	page.WriteString(supportHead)
	for _, s := range ops {
		if len(s.missing) > 0 {
			t.Errorf("%s has no kernels %s: write them in cuda/kernels, and run go generate ./cuda/kernels", s.name, list(s.missing, ""))
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s | %s | %s | %d |\n", s.name, s.synopsis, s.inputs, s.gradientCell(),
			s.host(), s.cuda(), list(s.fuses, ""), s.rows)
	}
	page.WriteString(kernelHead)
	for _, s := range ops {
		if len(s.forward) > 0 {
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", s.name, list(s.forward, "`"), cmp.Or(list(s.backward, "`"), "-"))
		}
	}
	return page.Bytes()
}

func (s *support) gradientCell() string {
	switch {
	case s.zero:
		return "zero"
	case len(s.gradient) == 0:
		return "-"
	}
	return list(s.gradient, "")
}

func (s *support) host() string {
	switch {
	case len(s.forward) == 0:
		return "no launch"
	case s.rowTiles:
		return "f32, f64, row tiles"
	}
	return "f32, f64"
}

// cuda lists the types and precisions of the kernels.
func (s *support) cuda() string {
	if len(s.forward) == 0 {
		return "no launch"
	}
	if len(s.reduced) > 0 {
		return "f32, f64, " + list(s.reduced, "")
	}
	return "f32, f64"
}

// list returns a set's members in order, each between marks.
func list(set map[string]bool, mark string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		all = append(all, mark+name+mark)
	}
	return strings.Join(all, ", ")
}

const supportHead = `# Ops and devices

<!-- Generated by go test ./graph/optest -run TestSupportTable -update; the same test without -update
compares this page with the code. -->

This page lists every op of packages graph/op and graph/op/array, and how the conformance suite
(graph/optest) tests it. The ops' comments have formulas and shapes: ` + "`go doc github.com/pollen-ml/pollen/graph/op.Conv2D`" + `.

- **Inputs**: the types of the inputs, in order. A float is float32 or float64, depending on the
  builder; the header contains a chain's seed, number and step.
- **Gradient**: how the gradient is tested, by central finite differences or against its formula in a
  plain loop. "zero" means that the gradient is defined as zero. "-" means that there is none, so a loss
  cannot be differentiated through the op.
- **Host**: the types that the CPU supports. "row tiles" means that consecutive launches can be fused
  and run a few rows at a time, in cache.
- **CUDA**: the types of the kernels in the embedded PTX, for the output and the gradients.
  tf32 and bf16 stand for products on tensor cores in float32 programs (docs/cuda.md).
- **Fuses**: the consumers whose work the op can do in the same launch.
- **Rows**: the number of test cases that apply the op. The suite runs each of them on every device: on
  the host by ` + "`go test ./graph/optest`" + `, on the emulated GPU and on a GPU by ` + "`go test ./cuda`" + `.

| Op | Computes | Inputs | Gradient | Host | CUDA | Fuses | Rows |
|---|---|---|---|---|---|---|---|
`

const kernelHead = `
## Kernels

This table lists the kernels that the rows of each op call, without the suffix _f32 or _f64. Gradients
may be composed of other ops, whose kernels they then use. Products and convolutions appear under
one name; package cuda chooses among their variants by size, precision and GPU (docs/cuda.md).

| Op | Output | Gradients |
|---|---|---|
`
