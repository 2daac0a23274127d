package command

import (
	"runtime/debug"
	"testing"
)

func TestVersionText(t *testing.T) {
	of := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	modified := []string{"vcs.revision", "ab12", "vcs.modified", "true"}
	arm := []string{"GOOS", "linux", "GOARCH", "arm64"}
	commit := append([]string{"vcs.revision", "ab12", "vcs.modified", "false", "vcs.time", "2026-11-26T10:00:00Z"}, arm...)
	for want, info := range map[string]*debug.BuildInfo{
		"(unknown): the program has no build information":                             nil,
		"(devel)\nrevision unknown\ngo1.26.8 linux/arm64":                             of("", arm...),
		"v1.2.3\nrevision unknown\ngo1.26.8 linux/arm64":                              of("v1.2.3", arm...),
		"v0.1.0+dirty\nrevision ab12, modified\ngo1.26.8 linux/arm64":                 of("v0.1.0+dirty", append(modified, arm...)...),
		"v0.1.0\nrevision ab12\ncommitted 2026-11-26T10:00:00Z\ngo1.26.8 linux/arm64": of("v0.1.0", commit...),
	} {
		if got := versionText(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
