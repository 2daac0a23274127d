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

// A goModule is a Go module that has data files beside its code.
type goModule struct {
	path, version string
	dir           string // of the data files, inside the module
	sourceFile    string // of one of its functions, as the compiler recorded it
}

// String returns path@version.
func (m goModule) String() string { return m.path + "@" + m.version }

// folders lists where the module's data may lie on this machine: beside the source file, unless it
// was trimmed from the program (-trimpath) or is a vendored copy, which leaves data out; then in
// the module caches.
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

// moduleCaches lists the folders that the go command would use as module cache given only the
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

// escapeModule writes each capital letter as ! and the lower-case letter, as the module cache does.
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

// fetch has the go command find the module, and download it unless offline,
// and returns the folder of its data.
func (m goModule) fetch(ctx context.Context, offline bool) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.String())
	command.Dir = os.TempDir() // outside of any module, whose own settings would count
	command.Env = append(os.Environ(), "GO111MODULE=on", "GOFLAGS=", "GOWORK=off")
	if offline {
		// What the module cache has was checked when it came: there is nobody to ask for its sum.
		command.Env = append(command.Env, "GOPROXY=off", "GOSUMDB=off")
	}
	output, err := command.Output()
	var result struct{ Dir, Error string }
	if json.Unmarshal(output, &result) == nil && result.Error != "" {
		err = errors.New(result.Error)
	}
	if err == nil && result.Dir == "" {
		err = errors.New("the go command named no folder")
	}
	if err != nil {
		return "", errors.Wrapf(err, "go mod download %s", m)
	}
	return filepath.Join(result.Dir, m.dir), nil
}
