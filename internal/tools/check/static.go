package main

import (
	"fmt"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// static reports what staticcheck would, by its default checks.
func static(loaded []*packages.Package) ([]string, error) {
	checks := []*analysis.Analyzer{unused.Analyzer.Analyzer}
	for _, a := range slices.Concat(staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers) {
		if !a.Doc.NonDefault {
			checks = append(checks, lint.InitializeAnalyzer(a).Analyzer)
		}
	}
	complaints, found, err := analyze(checks, loaded)
	if err != nil {
		return nil, err
	}
	// An object that a package does not use may be used by the variant of the package with tests.
	// An object is identified by its position.
	used, kinds := map[string]bool{}, map[string]string{}
	for _, action := range found {
		objects, ok := action.Result.(unused.Result)
		if !ok {
			continue
		}
		for _, o := range objects.Used {
			used[o.Position.String()] = true
		}
		for _, o := range objects.Unused {
			kinds[o.Position.String()] = o.Kind + " " + o.Name
		}
	}
	for position, kind := range kinds {
		if !used[position] {
			complaints = append(complaints, fmt.Sprintf("%s: %s is unused", position, kind))
		}
	}
	return complaints, nil
}
