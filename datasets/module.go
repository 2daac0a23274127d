package datasets

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/pkg/errors"
)

// goModule is a Go module that has data files next to its code.
type goModule struct {
	path, version string
	dir           string // directory of the data files, inside the module
	sourceFile    string // source file of one of its functions, as recorded by the compiler
}

// String returns path@version.
func (m goModule) String() string { return m.path + "@" + m.version }

// dirs lists the possible directories of the module's data on this machine: next to the source
// file, unless its path was trimmed from the program (-trimpath) or it is a vendored copy, which
// has no data; then in the module caches.
func (m goModule) dirs() []string {
	var dirs []string
	if filepath.IsAbs(m.sourceFile) {
		dirs = append(dirs, filepath.Join(filepath.Dir(m.sourceFile), m.dir))
	}
	for _, cache := range moduleCaches() {
		dirs = append(dirs, filepath.Join(cache, filepath.FromSlash(escapeModule(m.String())), m.dir))
	}
	return dirs
}

// moduleCaches lists the directories that the go command would use as module cache, given only the
// environment.
func moduleCaches() []string {
	if cache := os.Getenv("GOMODCACHE"); cache != "" {
		return []string{cache}
	}
	paths := filepath.SplitList(os.Getenv("GOPATH"))
	if home, err := os.UserHomeDir(); err == nil && len(paths) == 0 {
		paths = []string{filepath.Join(home, "go")}
	}
	var caches []string
	for _, path := range paths {
		caches = append(caches, filepath.Join(path, "pkg", "mod"))
	}
	return caches
}

// escapeModule replaces each capital letter by ! and the lower-case letter, as in the module cache.
func escapeModule(name string) string {
	var escaped strings.Builder
	for _, letter := range name {
		if unicode.IsUpper(letter) {
			escaped.WriteByte('!')
		}
		escaped.WriteRune(unicode.ToLower(letter))
	}
	return escaped.String()
}

// fetch finds the module with the go command, which downloads it unless offline, and returns the
// directory of its data.
func (m goModule) fetch(ctx context.Context, offline bool) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.String())
	command.Dir = os.TempDir() // outside any module, whose settings would apply
	command.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=", "GOWORK=off")
	if offline {
		// The module cache was verified when it was downloaded, and no checksum database is
		// reachable.
		command.Env = append(command.Env, "GOPROXY=off", "GOSUMDB=off")
	}
	output, err := command.Output()
	var result struct{ Dir, Error string }
	if json.Unmarshal(output, &result) == nil && result.Error != "" {
		err = errors.New(result.Error)
	}
	if err == nil && result.Dir == "" {
		err = errors.New("the go command returned no directory")
	}
	if err != nil {
		return "", errors.Wrapf(err, "go mod download %s", m)
	}
	return filepath.Join(result.Dir, m.dir), nil
}
