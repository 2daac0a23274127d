// Command check looks at a module for mistakes:
//
//	go run -C tools ./check FOLDER linux/arm64 darwin/arm64 windows/amd64
//
// For each platform it checks the types of all packages and tests, as a compiler does, and has the
// analyzers of go vet look at them; for this machine's platform, those of staticcheck. It reads the
// source of what the module imports, without the bodies of functions, which go vet would compile
// and staticcheck would analyze: that takes minutes, and finds nothing of ours.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/asmdecl"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/framepointer"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/stdmethods"
	"golang.org/x/tools/go/analysis/passes/unmarshal"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

// analyzers are those of go vet that may find something else on another platform.
var analyzers = []*analysis.Analyzer{
	asmdecl.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, copylock.Analyzer, errorsas.Analyzer,
	framepointer.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer, stdmethods.Analyzer,
	unmarshal.Analyzer, unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "check: wants FOLDER [OS/ARCHITECTURE...]")
		os.Exit(2)
	}
	found := 0
	for i, platform := range append([]string{runtime.GOOS + "/" + runtime.GOARCH}, os.Args[2:]...) {
		examine := examination(vet)
		if i == 0 {
			examine = static
		}
		complaints, err := check(os.Args[1], platform, examine)
		if err != nil {
			fmt.Fprintf(os.Stderr, "check: %s: %v\n", platform, err)
			os.Exit(1)
		}
		for _, complaint := range complaints {
			fmt.Printf("%s: %s\n", platform, complaint)
		}
		found += len(complaints)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// examination is what is wrong with packages whose types are right.
type examination func([]*packages.Package) (complaints []string, err error)

// check is what is wrong with a module on a platform, examined when its types are right.
func check(dir, platform string, examine examination) (complaints []string, err error) {
	system, architecture, divided := strings.Cut(platform, "/")
	if !divided {
		return nil, fmt.Errorf("wants OS/ARCHITECTURE")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Dir:   dir,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOWORK=off"),
		Tests: true,
		ParseFile: func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution|parser.ParseComments)
			of, own := filepath.Base(filepath.Dir(name)), strings.HasPrefix(name, dir+string(filepath.Separator))
			if file != nil && !own && !slices.Contains(informative, of) {
				withoutBodies(file)
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages")
	}
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") }) // made by go test
	for _, p := range loaded {
		for _, e := range p.Errors {
			complaints = append(complaints, e.Error())
		}
	}
	if len(complaints) > 0 { // analyzers want types
		return unique(complaints), nil
	}
	// A file without bodies imports what it does not use, which is an error there and nowhere else.
	packages.Visit(loaded, nil, func(p *packages.Package) { p.IllTyped = false })
	complaints, err = examine(loaded)
	return unique(complaints), err
}

// vet is what go vet would say.
func vet(loaded []*packages.Package) ([]string, error) {
	complaints, _, err := analyze(analyzers, loaded)
	return complaints, err
}

// analyze is what analyzers say, and what they found.
func analyze(analyzers []*analysis.Analyzer, loaded []*packages.Package) (complaints []string, found []*checker.Action, err error) {
	results, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, action := range results.Roots {
		if action.Err != nil {
			return nil, nil, action.Err
		}
		for _, d := range action.Diagnostics {
			complaints = append(complaints, fmt.Sprintf("%s: %s", action.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	return complaints, results.Roots, nil
}

// unique sorts complaints: a package is looked at alone and with its tests.
func unique(complaints []string) []string {
	slices.Sort(complaints)
	return slices.Compact(complaints)
}

// telling are packages whose functions say more by their bodies: that they do not return, or that
// they do nothing but return something.
var informative = []string{"bytes", "log", "os", "runtime", "strconv", "strings", "testing"}

// withoutBodies leaves the declarations of a file.
func withoutBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, is := declaration.(*ast.FuncDecl); is {
			function.Body = nil
		}
	}
}
