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

// static is what staticcheck would say, by the checks that it makes where nothing else is asked
// for.
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
	// What a package does not use may be used where its tests are in it. One object has one
	// position.
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
