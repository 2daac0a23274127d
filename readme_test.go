package pollen

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The README's program must compile, and vet find nothing.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("(?s)```go\n(.*?)```").FindSubmatch(readme)
	if code == nil {
		t.Fatal("README.md has no Go program")
	}
	program := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(program, code[1], 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "vet", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
