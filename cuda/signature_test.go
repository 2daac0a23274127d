package cuda

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// launched has the names of launches in the sources of ops, optimizers and samplers, and words that
// make up such names.
type launched struct {
	whole   map[string]bool // literals that are the name in a call of Emit or Call
	strides map[string]bool // those whose grid is made by tensor.Threads, Vec4 or Warps
	words   map[string]bool // all literals
}

// readLaunched reads these sources. It skips the test on a machine without them.
func readLaunched(t *testing.T) launched {
	t.Helper()
	if _, err := os.Stat("../cuda/kernels"); errors.Is(err, os.ErrNotExist) {
		t.Skip("the test reads the sources of ops and samplers, which are not here")
	}
	l := launched{whole: map[string]bool{}, strides: map[string]bool{}, words: map[string]bool{"": true}}
	dirs := []string{
		"../graph", "../graph/op", "../graph/op/array", "../optimizers", "../langevin", "../mcmc", "../distributions", "../layers", ".", "internal/plan",
	}
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					if method, ok := call.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "Emit" || method.Sel.Name == "Call") {
						if text, ok := literal(call.Args[0]); ok {
							l.whole[text] = true
							l.strides[text] = l.strides[text] || isThreads(call.Args[1])
						}
					}
				}
				if e, ok := n.(ast.Expr); ok {
					if text, ok := literal(e); ok {
						for _, word := range verbs.Split(text, -1) {
							l.words[strings.Trim(suffixes.ReplaceAllString(word, ""), "_")] = true
							l.words[word] = true
							l.words[strings.TrimSuffix(strings.TrimSuffix(word, "_fwd"), "_bwd")] = true
						}
					}
				}
				return true
			})
		}
	}
	return l
}

// isThreads reports whether a grid is made by tensor.Threads, Vec4 or Warps.
func isThreads(grid ast.Expr) bool {
	call, ok := grid.(*ast.CallExpr)
	if !ok {
		return false
	}
	made, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (made.Sel.Name == "Threads" || made.Sel.Name == "Vec4" || made.Sel.Name == "Warps")
}

func literal(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(b.Value)
	return text, err == nil
}

// made reports whether a name is made of at most words of l.words.
func (l launched) made(name string, words int) bool {
	if l.words[name] {
		return true
	}
	for i := 1; words > 1 && i < len(name); i++ {
		if l.words[name[:i]] && l.made(name[i:], words-1) {
			return true
		}
	}
	return false
}

// verbs matches the places in a format where a value is inserted.
var verbs = regexp.MustCompile(`%[a-z]`)

// strides matches the sizes in the middle of a name: a filter's size, and its stride.
var strides = regexp.MustCompile(`_\d+x\d+_stride\d+_`)

// ofIntegers lists kernels that process only integers. Their names do not end in a type.
var ofIntegers = map[string]bool{"gather_examples": true, "next_header": true}

var suffixes = regexp.MustCompile(`(_\d+(x\d+){0,2})?_(f32|f64|fp32|tf32|bf16)$`)

// TestKernelsAndLaunches: every launch has a kernel, and every kernel a launch, as far as names
// show. Loading a workload checks the rest (checkSignature).
func TestKernelsAndLaunches(t *testing.T) {
	all, err := kernels.Files()
	if err != nil {
		t.Fatal(err)
	}
	l := readLaunched(t)
	have := map[string]bool{}
	for _, f := range all {
		if f.Added {
			continue // a test's
		}
		for _, e := range f.Entries {
			stem := suffixes.ReplaceAllString(e.Name, "")
			have[stem] = true
			if stem == e.Name && !ofIntegers[stem] {
				t.Errorf("%s: kernel %s does not end in its type", f.Name, e.Name)
			}
			if !l.made(strides.ReplaceAllString(stem, "_"), 3) {
				t.Errorf("%s: no launch is called %s", f.Name, e.Name)
			}
		}
	}
	for name := range l.whole {
		if !have[name] {
			t.Errorf("no kernel for launch %s", name)
		}
	}
}

func TestMatches(t *testing.T) {
	b := tensor.NewBuffer("x", tensor.Chain, tensor.Float32, 4)
	e := kernels.Entry{Name: "k_f32", Threads: 256, Parameters: []kernels.Parameter{kernels.Buffer, kernels.Integer, kernels.Float32, kernels.Float64}}
	good := []tensor.Argument{tensor.In(b), tensor.Uint(3), tensor.Float(tensor.Float32, 1), tensor.Float(tensor.Float64, 1)}
	if err := checkSignature(e, plan.Call{Threads: 256, Arguments: good}); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]plan.Call{
		"4 parameters, got 3":                                {Threads: 1, Arguments: good[:3]},
		"parameter 1 of k_f32 must be a 32-bit integer, got": {Threads: 1, Arguments: []tensor.Argument{good[0], good[0], good[2], good[3]}},
		"parameter 3 of k_f32 must be a float64, got":        {Threads: 1, Arguments: []tensor.Argument{good[0], good[1], good[2], good[2]}},
		"at most 256 threads, got 257":                       {Threads: 257, Arguments: good},
	} {
		if err := checkSignature(e, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestStartable(t *testing.T) {
	with := func(arena tensor.Arena, elements int) []tensor.Argument {
		return []tensor.Argument{tensor.Int(1), tensor.In(tensor.NewBuffer("x", arena, tensor.Float32, elements))}
	}
	good := plan.Call{Symbol: "k_f32", Blocks: [2]int{1, 1}, Arguments: with(tensor.Scratch, maxElements)}
	if err := checkGrid(good, maxBlocksYZ); err != nil {
		t.Error(err)
	}
	if err := checkGrid(plan.Call{Blocks: [2]int{1, 1}, Arguments: with(tensor.Shared, 1<<40)}, 1); err != nil {
		t.Errorf("a large data set: %v", err)
	}
	for want, c := range map[string]plan.Call{
		"grid of [0 1] blocks": {Blocks: [2]int{0, 1}}, "grid of [1 65536] blocks": {Blocks: [2]int{1, 1 << 16}},
		"argument 1 of k_f32 must have at most 2145386496 elements, got 2145386497": {
			Symbol: "k_f32", Blocks: good.Blocks, Arguments: with(tensor.Scratch, maxElements+1),
		},
	} {
		if err := checkGrid(c, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := checkGrid(good, maxBlocksYZ+1); err == nil {
		t.Error("too many chains are started")
	}
}

// TestStridingKernelsTakeTheirBlocks: a kernel whose grid is a number of threads must take blocks
// of plan.GridStrideThreads.
func TestStridingKernelsTakeTheirBlocks(t *testing.T) {
	all, err := ptxFiles()
	if err != nil {
		t.Fatal(err)
	}
	checked, strides := 0, readLaunched(t).strides
	for _, s := range all {
		for symbol, entry := range s.entries {
			stem := suffixes.ReplaceAllString(symbol, "")
			if !strides[stem] {
				continue
			}
			checked++
			if entry.Threads < plan.GridStrideThreads {
				t.Errorf("%s of %s takes blocks of %d threads, and is started with %d", symbol, s.name, entry.Threads, plan.GridStrideThreads)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d kernels that stride are found in the sources", checked)
	}
}
