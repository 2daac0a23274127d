package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// TestPollen: the bill of materials of pollen is CycloneDX, has the program's hash and exactly the
// modules that go list finds in its dependencies, and is the same when it is made again.
func TestPollen(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pollen")
	inRoot := func(arguments ...string) string {
		t.Helper()
		command := exec.Command("go", arguments...)
		command.Dir = "../../.."
		out, err := command.Output()
		if err != nil {
			t.Fatalf("go %v: %v", arguments, err)
		}
		return string(out)
	}
	inRoot("build", "-trimpath", "-o", program, "./cmd/pollen")
	var first, second bytes.Buffer
	if err := run(program, &first); err != nil {
		t.Fatal(err)
	}
	if err := run(program, &second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("made twice, the files differ (%v)", err)
	}
	var plain struct{ BOMFormat, SpecVersion string }
	if err := json.Unmarshal(first.Bytes(), &plain); err != nil || plain.BOMFormat != "CycloneDX" || plain.SpecVersion != "1.6" {
		t.Errorf("the file is %+v (%v)", plain, err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if main := bom.Metadata.Component; main.Name != "pollen" || (*main.Hashes)[0].Value != hex.EncodeToString(sum[:]) {
		t.Errorf("the program is %+v", main)
	}
	listed := strings.Fields(inRoot("list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/pollen"))
	listed = append(listed, "std@"+strings.TrimPrefix(strings.TrimSpace(inRoot("env", "GOVERSION")), "go"))
	slices.Sort(listed)
	want := slices.Compact(listed)
	var got []string
	seen := map[string]bool{}
	for _, c := range *bom.Components {
		got = append(got, c.Name+"@"+c.Version)
		if c.PackageURL != "pkg:golang/"+c.Name+"@"+c.Version || seen[c.BOMRef] {
			t.Errorf("the component %+v", c)
		}
		seen[c.BOMRef] = true
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(got) < 20 {
		t.Errorf("modules\n%v, want\n%v", got, want)
	}
	for _, used := range *(*bom.Dependencies)[0].Dependencies {
		if !seen[used] {
			t.Errorf("%s is used, and no component", used)
		}
	}
}

// A module that is replaced is listed as what replaces it.
func TestReplaced(t *testing.T) {
	c := module(&debug.Module{Path: "a.org/a", Version: "v1.0.0", Replace: &debug.Module{Path: "b.org/b", Version: "v1.2.3", Sum: "h1:x"}})
	if c.PackageURL != "pkg:golang/b.org/b@v1.2.3" || (*c.Properties)[0].Value != "h1:x" {
		t.Errorf("%+v", c)
	}
	if c := module(&debug.Module{Path: "a.org/a"}); c.PackageURL != "pkg:golang/a.org/a" || c.Version != "(devel)" {
		t.Errorf("%+v", c)
	}
}

func TestNoGoProgram(t *testing.T) {
	if err := run("main.go", &bytes.Buffer{}); err == nil {
		t.Error("a source has a bill of materials")
	}
}
