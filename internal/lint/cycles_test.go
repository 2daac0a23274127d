package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// longestCycle is the maximum number of files of a package that all use each other, directly or
// through others: to understand one of them, one must read them all.
const longestCycle = 5

// TestFewFilesUseEachOther: a file uses another if it names a function, type, variable, method or
// field that the other declares. Tests are left out.
func TestFewFilesUseEachOther(t *testing.T) {
	packages, err := listed(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, p := range packages {
		if p.ImportPath != module && !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		ours++
		uses, err := p.uses(packages)
		if err != nil {
			t.Fatal(err)
		}
		for _, files := range cycles(uses) {
			if len(files) > longestCycle {
				t.Errorf("%s: %d files use each other, at most %d may: let files use only what is below them: %s",
					p.ImportPath, len(files), longestCycle, strings.Join(files, " "))
			}
		}
	}
	if ours < 50 {
		t.Errorf("found %d packages: most of the product is missing", ours)
	}
}

func TestCycles(t *testing.T) {
	uses := map[string]map[string]bool{}
	for _, edge := range []string{"ab", "bc", "ca", "cd", "de", "ed", "ef", "gf", "ag"} {
		from, to := edge[:1], edge[1:]
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	if got, want := fmt.Sprint(cycles(uses)), "[[a b c] [d e]]"; got != want {
		t.Errorf("cycles = %s, want %s", got, want)
	}
}

// listedPackage is what go list prints of a package.
type listedPackage struct {
	ImportPath, Dir string
	Export          string // file of what it exports
	GoFiles         []string
}

// listed returns the packages of the module in a directory and those they import, by import path.
func listed(dir string) (map[string]listedPackage, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir = dir
	var complaints bytes.Buffer
	list.Stderr = &complaints
	output, err := list.Output()
	if err != nil {
		return nil, errors.Wrapf(err, "go list: %s", complaints.String())
	}
	packages := map[string]listedPackage{}
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listedPackage
		switch err := d.Decode(&p); {
		case err == io.EOF:
			return packages, nil
		case err != nil:
			return nil, errors.Wrap(err, "go list")
		}
		packages[p.ImportPath] = p
	}
}

// uses returns which files of a package each of its files uses.
func (p listedPackage) uses(packages map[string]listedPackage) (map[string]map[string]bool, error) {
	positions := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(positions, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, errors.WithStack(err)
		}
		files = append(files, f)
	}
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := config.Check(p.ImportPath, positions, files, info)
	if err != nil {
		return nil, errors.WithStack(err)
	}
	file := func(at token.Pos) string { return filepath.Base(positions.Position(at).Filename) }
	uses := map[string]map[string]bool{}
	for name, object := range info.Uses {
		if object.Pkg() != checked || !object.Pos().IsValid() { // the universe's, or another package's
			continue
		}
		if from, to := file(name.Pos()), file(object.Pos()); from != to {
			if uses[from] == nil {
				uses[from] = map[string]bool{}
			}
			uses[from][to] = true
		}
	}
	return uses, nil
}

// cycles returns the strongly connected components of two files and more, each sorted. Source:
// Tarjan, Depth-first search and linear graph algorithms (1972).
func cycles(uses map[string]map[string]bool) (found [][]string) {
	number, low := map[string]int{}, map[string]int{} // in the order of visits, and the lowest reached
	var stack []string
	var visit func(file string)
	visit = func(file string) {
		number[file] = len(number) + 1
		low[file] = number[file]
		at := len(stack)
		stack = append(stack, file)
		for _, to := range slices.Sorted(maps.Keys(uses[file])) {
			if number[to] == 0 {
				visit(to)
				low[file] = min(low[file], low[to])
			} else if slices.Contains(stack, to) {
				low[file] = min(low[file], number[to])
			}
		}
		if low[file] < number[file] {
			return
		}
		component := slices.Sorted(slices.Values(stack[at:]))
		stack = stack[:at]
		if len(component) > 1 {
			found = append(found, component)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	slices.SortFunc(found, slices.Compare)
	return found
}
