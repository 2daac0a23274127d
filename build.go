package pollen

import (
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// ourModule is the module whose revision a manifest records.
const ourModule = "github.com/pollen-ml/pollen"

// unknownRevision is the revision where the build records none: go run leaves it out, and so does
// go build with -buildvcs=false or outside the repository.
const unknownRevision = "unknown: wants a program made by go build in a clone, or go run -buildvcs=true"

// Build is what a program was made from, as far as it is recorded.
type Build struct {
	Revision string            `json:"revision"` // a commit, or a module's version
	Modified bool              `json:"modified"` // files had changed since, or nobody knows
	Versions map[string]string `json:"versions"` // of Go, and of the modules that make graphs
}

// Continued is a part of a run that another build made, or another device, than the part before.
type Continued struct {
	From   int    `json:"from"` // the steps made before
	Device string `json:"device"`
	Build
}

func (c Continued) note() string {
	modified := ""
	if c.Modified {
		modified = ", modified"
	}
	return fmt.Sprintf("the steps after %d were made by the build %s%s, on %s", c.From, c.Revision, modified, c.Device)
}

// noteContinued keeps in the manifest who makes the steps from here on, if those before were made
// by another build or device. Runs of earlier formats have only the remark of it.
func (t *training) noteContinued(made int, device string, build Build) error {
	m := t.manifest
	if m.Format < sealedFormat || made == t.plan.Steps {
		return nil
	}
	again := func(c Continued) bool { return c.From >= made } // those steps are made again
	parts := slices.DeleteFunc(slices.Clone(m.Continued), again)
	last, now := Continued{0, m.Device, m.Build}, Continued{made, device, build}
	if len(parts) > 0 {
		last = parts[len(parts)-1]
	}
	last.From = made
	if !reflect.DeepEqual(last, now) {
		parts = append(parts, now)
	}
	if reflect.DeepEqual(parts, m.Continued) {
		return nil
	}
	m.Continued = parts
	return t.writer.write(manifestFile, m, "  ")
}

// thisBuild is what this program was made from.
func thisBuild() Build {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf reads what Go's linker recorded; info is nil if it recorded nothing. The recorded commit
// is the main module's: a program of another module that imports ours has ours by its version.
func buildOf(info *debug.BuildInfo) Build {
	b := Build{Revision: unknownRevision, Modified: true, Versions: map[string]string{"go": runtime.Version()}}
	if info == nil {
		return b
	}
	var ours *debug.Module
	if info.Main.Path == ourModule {
		ours = &info.Main
	}
	for _, dependency := range info.Deps {
		if strings.HasPrefix(dependency.Path, "gorgonia.org/") {
			b.Versions[dependency.Path] = dependency.Version
		}
		if dependency.Path == ourModule {
			ours = dependency
		}
	}
	if ours == nil {
		return b
	}
	settings := map[string]string{}
	if ours == &info.Main {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	switch commit := settings["vcs.revision"]; {
	case commit != "":
		b.Revision, b.Modified = commit, settings["vcs.modified"] != "false"
	case ours.Replace != nil && isVersion(ours.Replace.Version):
		b.Revision, b.Modified = ours.Replace.Path+"@"+ours.Replace.Version, false
	case ours.Replace == nil && isVersion(ours.Version):
		b.Revision, b.Modified = ours.Version, false
	}
	return b
}

// isVersion reports whether a module's version identifies its source: a folder's does not.
func isVersion(version string) bool { return version != "" && version != "(devel)" }
