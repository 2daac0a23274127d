package doctest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestExamplesAreWhole: an example of a package that users import can be copied, as pkg.go.dev
// shows it, because it uses nothing of the package's other tests.
func TestExamplesAreWhole(t *testing.T) {
	tests := map[string][]*ast.File{} // by directory
	positions := token.NewFileSet()
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, "_test.go") || strings.Contains(filepath.ToSlash(name), "/internal/") {
			return err
		}
		file, err := parser.ParseFile(positions, name, nil, parser.ParseComments)
		tests[filepath.Dir(name)] = append(tests[filepath.Dir(name)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	examples := 0
	for dir, files := range tests {
		for _, example := range doc.Examples(files...) {
			examples++
			switch missing := missingNames(example.Play); {
			case example.Play == nil:
				t.Errorf("%s: Example%s uses names of other files", dir, example.Name)
			case len(missing) > 0:
				t.Errorf("%s: Example%s uses %v of other files", dir, example.Name, missing)
			}
		}
	}
	if examples < 40 {
		t.Errorf("found %d examples, want at least 40", examples)
	}
}

// missingNames returns the names that a program neither declares nor imports.
func missingNames(program *ast.File) (missing []string) {
	if program == nil {
		return nil
	}
	known := map[string]bool{}
	for _, name := range types.Universe.Names() {
		known[name] = true
	}
	for _, spec := range program.Imports {
		address, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		known[path.Base(address)] = true
		if strings.HasPrefix(path.Base(address), "v") {
			known[path.Base(path.Dir(address))] = true
		}
		if spec.Name != nil {
			known[spec.Name.Name] = true
		}
	}
	declared := map[string]bool{}
	for _, declaration := range program.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			declared[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					declared[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range s.Names {
						declared[name.Name] = true
					}
				}
			}
		}
	}
	for _, name := range program.Unresolved {
		if !known[name.Name] && !declared[name.Name] {
			missing = append(missing, name.Name)
		}
	}
	return missing
}
