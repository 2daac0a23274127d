package command

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/serve"
)

// modelDir is the directory of a run that is served under a name and version.
type modelDir struct{ name, version, dir string }

// modelDirs returns the models that arguments of the form [NAME[:VERSION]=]DIR name, see serve's
// help. An argument that is the path of a directory is not split.
func modelDirs(arguments []string) ([]modelDir, error) {
	var all []modelDir
	for _, argument := range arguments {
		m := modelDir{dir: argument}
		if before, after, found := strings.Cut(argument, "="); found && !exists(argument) {
			m.dir = after
			m.name, m.version, _ = strings.Cut(before, ":")
			if m.name == "" || m.dir == "" || strings.Contains(before, ":") && m.version == "" {
				return nil, usage("pollen: serve: a model must be of the form NAME=DIR or NAME:VERSION=DIR, got %q", argument)
			}
		}
		if m.name == "" {
			path, err := filepath.Abs(m.dir) // it may be "."
			if err != nil {
				return nil, errors.Wrap(err, "pollen: serve")
			}
			m.name = filepath.Base(path)
		}
		versions := versionsIn(m.dir)
		switch {
		case versions == nil:
			all = append(all, m)
			continue
		case m.version != "":
			return nil, usage("pollen: serve: %s has the versions %s: it must be given without a version, got %q", m.dir, strings.Join(versions, ", "), m.version)
		}
		for _, version := range versions {
			all = append(all, modelDir{m.name, version, filepath.Join(m.dir, version)})
		}
	}
	return all, nil
}

// versionsIn returns the names of the runs in a directory that is not a run itself, in the order of
// versions: numbers by their value, then others. It returns nil for a run, and for a directory
// without runs, which bayes.Open will report.
func versionsIn(dir string) []string {
	if exists(filepath.Join(dir, rundir.ManifestFile)) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var versions []string
	for _, entry := range entries {
		if exists(filepath.Join(dir, entry.Name(), rundir.ManifestFile)) {
			versions = append(versions, entry.Name())
		}
	}
	number := func(version string) uint64 {
		n, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			return math.MaxUint64 // after all numbers
		}
		return n
	}
	slices.SortFunc(versions, func(a, b string) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
	})
	return versions
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// remarkVersions remarks on versions whose classes or image sizes differ from the version before.
// Clients that name no version get answers of another kind once such a version is added.
func remarkVersions(models []serve.Model, c *console) {
	before := map[string]serve.Model{}
	for _, m := range models {
		old, found := before[m.Name]
		before[m.Name] = m
		if !found {
			continue
		}
		a, b := old.Run.Manifest().Data, m.Run.Manifest().Data
		differ := ""
		switch {
		case !slices.Equal(a.ClassNames, b.ClassNames):
			differ = fmt.Sprintf("classes, %s and %s", firstNames(a.ClassNames), firstNames(b.ClassNames))
		case a.Channels != b.Channels || a.Height != b.Height || a.Width != b.Width:
			differ = fmt.Sprintf("sizes of images, %dx%dx%d and %dx%dx%d", a.Channels, a.Height, a.Width, b.Channels, b.Height, b.Width)
		default:
			continue
		}
		c.remark("serve: versions %s and %s of %s have different %s; a request without a version gets the last one. "+
			"Other models can have names of their own: NAME=%s",
			cmp.Or(old.Version, "1"), cmp.Or(m.Version, "1"), m.Name, differ, m.Run.Dir())
	}
}

// firstNames returns a list of the first names.
func firstNames(names []string) string {
	const most = 4
	if len(names) <= most {
		return "(" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("(%s and %d others)", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

// openModels opens the runs of the models.
func openModels(all []modelDir, options []bayes.Option) ([]serve.Model, error) {
	models := make([]serve.Model, len(all))
	for i, m := range all {
		run, err := bayes.Open(m.dir, options...)
		if err != nil {
			return nil, err
		}
		images := config.ImagesOf(run.Manifest())
		models[i] = serve.Model{Name: m.name, Version: m.version, Run: run, FloatMax: images.FloatMax, OtherColumns: images.OtherColumns}
	}
	return models, nil
}
