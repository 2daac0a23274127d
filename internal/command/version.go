package command

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// addVersion adds the flag --version, which prints the build information that Go's linker recorded.
func addVersion(root *cobra.Command) {
	info, _ := debug.ReadBuildInfo()
	root.Version = versionText(info)
	root.SetVersionTemplate("pollen {{.Version}}\n")
}

// versionText describes a build: the version of the module, the commit that it was built from, and
// Go's version and platform. info is nil for a program without such a record.
func versionText(info *debug.BuildInfo) string {
	if info == nil {
		return "(unknown): the program has no build information"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if settings["vcs.modified"] == "true" {
		revision += ", modified"
	}
	text := fmt.Sprintf("%s\nrevision %s", cmp.Or(info.Main.Version, "(devel)"), revision)
	if at := settings["vcs.time"]; at != "" {
		text += fmt.Sprintf("\ncommitted %s", at)
	}
	return text + fmt.Sprintf("\n%s %s/%s", info.GoVersion, settings["GOOS"], settings["GOARCH"])
}
