package optest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// An op without a row would be tested by nothing.
func TestEveryOpHasARow(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range Cases() {
		b := graph.New(tensor.Float32)
		in := c.inputs(b)
		if c.Build != nil {
			c.Build(b, in)
		} else {
			b.Apply(c.Op, in...)
		}
		for _, a := range b.Applications() {
			op := reflect.TypeOf(a.Op)
			tested[op.PkgPath()[strings.LastIndex(op.PkgPath(), "/")+1:]+"."+op.Name()] = true
		}
	}
	for _, dir := range []string{"op", "op/array"} {
		names := opsOf(t, filepath.Join("..", dir))
		if len(names) < 5 {
			t.Errorf("%s: found only the ops %v", dir, names)
		}
		for _, name := range names {
			if !tested[name] {
				t.Errorf("%s has no row in a cases_*.go file", name)
			}
		}
	}
}

// opsOf returns the exported types of a package's directory that have or embed a method Lower, such
// as op.ReLU.
func opsOf(t *testing.T, dir string) (names []string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name, ok := receiver(n); ok && n.Name.Name == "Lower" {
					found[name] = true
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && embeds(s, "elementwise") {
					found[n.Name.Name] = true
				}
			}
			return true
		})
	}
	for name := range found {
		if ast.IsExported(name) {
			names = append(names, filepath.Base(dir)+"."+name)
		}
	}
	return names
}

func receiver(f *ast.FuncDecl) (name string, ok bool) {
	if f.Recv == nil {
		return "", false
	}
	of, ok := f.Recv.List[0].Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return of.Name, true
}

func embeds(s *ast.StructType, generic string) bool {
	for _, field := range s.Fields.List {
		if of, ok := field.Type.(*ast.IndexExpr); ok && len(field.Names) == 0 {
			if name, ok := of.X.(*ast.Ident); ok && name.Name == generic {
				return true
			}
		}
	}
	return false
}
