package random

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// A build for a 32-bit processor fails with a message in this package, on which all packages that
// count steps or elements depend.
func TestBuildsFor32BitsFail(t *testing.T) {
	for _, goarch := range []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64le", "riscv64", "s390x", "wasm"} {
		target := build.Default
		target.GOOS, target.GOARCH, target.CgoEnabled = "linux", goarch, false
		pkg, err := target.ImportDir(".", 0)
		if err != nil {
			t.Fatal(err)
		}
		small := types.SizesFor("gc", goarch).Sizeof(types.Typ[types.Int]) == 4
		if refused := slices.Contains(pkg.GoFiles, "bits32.go"); refused != small {
			t.Errorf("GOARCH=%s: refused %v, want %v", goarch, refused, small)
		}
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "bits32.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	check := types.Config{Importer: importer.Default()}
	if _, err := check.Check("random", set, []*ast.File{file}, nil); err == nil || !strings.Contains(err.Error(), "64_bit_processor") {
		t.Errorf("type check: %v, want an error that names the processor", err)
	}
}
