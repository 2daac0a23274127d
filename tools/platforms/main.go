// Command platforms checks a module for other platforms than this one:
//
//	go run -C tools ./platforms FOLDER linux/arm64 darwin/arm64 windows/amd64
//
// It checks the types of all packages and tests of the module in the folder, as a compiler does,
// and has the analyzers of go vet look at them. It reads the source of what they import, without
// the bodies of functions, where go vet would compile it: no code is made for a platform.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
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
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "platforms: wants FOLDER OS/ARCHITECTURE...")
		os.Exit(2)
	}
	found := 0
	for _, platform := range os.Args[2:] {
		complaints, err := check(os.Args[1], platform)
		if err != nil {
			fmt.Fprintf(os.Stderr, "platforms: %s: %v\n", platform, err)
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

// check is what is wrong with a module on a platform.
func check(folder, platform string) (complaints []string, err error) {
	system, architecture, divided := strings.Cut(platform, "/")
	if !divided {
		return nil, fmt.Errorf("wants OS/ARCHITECTURE")
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax,
		Dir:   folder,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOWORK=off"),
		Tests: true,
		ParseFile: func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
			file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution|parser.ParseComments)
			if file != nil && !strings.HasPrefix(name, folder+string(filepath.Separator)) {
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
	results, err := checker.Analyze(analyzers, loaded, nil)
	if err != nil {
		return nil, err
	}
	for _, action := range results.Roots {
		if action.Err != nil {
			return nil, action.Err
		}
		for _, d := range action.Diagnostics {
			complaints = append(complaints, fmt.Sprintf("%s: %s", action.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	return unique(complaints), nil
}

// unique sorts complaints: a package is looked at alone and with its tests.
func unique(complaints []string) []string {
	slices.Sort(complaints)
	return slices.Compact(complaints)
}

// withoutBodies leaves the declarations of a file.
func withoutBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if function, is := declaration.(*ast.FuncDecl); is {
			function.Body = nil
		}
	}
}
