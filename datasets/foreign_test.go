package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Files of data that are not read have the line of Python that converts them, which the tutorial
// has, too.
func TestForeignData(t *testing.T) {
	tutorial, err := os.ReadFile(filepath.Join("..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	options := isolated(t)
	for _, format := range foreignData {
		name := "data" + format.extensions[0]
		if _, python, _ := strings.Cut(conversion(name), "\n  "); !strings.Contains(string(tutorial), "`"+python+"`") {
			t.Errorf("the tutorial lacks %s", python)
		}
		for _, extension := range format.extensions {
			dir := t.TempDir()
			path := filepath.Join(dir, "data"+strings.ToUpper(extension))
			write(t, []byte("x"), path)
			want := []string{format.name + " is not read: convert it to an .npz archive", fmt.Sprintf("numpy.savez(%q", filepath.Join(dir, "data.npz"))}
			_, err := Open(path, options)
			wantError(t, err, append(want, path+": ")...)
			_, err = Open(dir, options)
			wantError(t, err, want...)
			_, err = ReadImages([]string{path}, options)
			wantError(t, err, want...)
		}
	}
	if got := conversion("data.txt"); got != "" {
		t.Errorf("data.txt: %s", got)
	}
}
