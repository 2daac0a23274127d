package bayes

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
)

// TestUsualValues: the values that comments of fields call usual are those of the registry, and
// every number of the registry's optimizers and samplers on minibatches is in a comment.
func TestUsualValues(t *testing.T) {
	usual := regexp.MustCompile(`usually ([\d.e-]*\d)`)
	comments := map[string]string{} // by type and field
	files, err := filepath.Glob("../[ol]*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := declared.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						comments[file.Name.Name+"."+declared.Name.Name+"."+name.Name] = field.Doc.Text() + field.Comment.Text()
					}
				}
			}
			return false
		})
	}
	for _, k := range registry {
		kind, err := kindOf(k.method)
		if err != nil {
			t.Fatal(err)
		}
		switch kind.(type) {
		case optimizerKind, minibatchKind:
		default:
			continue
		}
		method := reflect.ValueOf(k.method)
		for i := range method.NumField() {
			name := fmt.Sprint(method.Type(), ".", method.Type().Field(i).Name)
			want := method.Field(i)
			if !want.CanFloat() && !want.CanInt() || want.IsZero() {
				continue
			}
			var value float64
			found := usual.FindStringSubmatch(comments[name])
			if found != nil {
				fmt.Sscan(found[1], &value)
			}
			if value != want.Convert(reflect.TypeOf(value)).Float() {
				t.Errorf("%s: the comment %q has the usual value %v, want %v", name, comments[name], value, want)
			}
		}
	}
}
