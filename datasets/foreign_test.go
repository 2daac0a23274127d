package datasets

import (
	"fmt"
	"image"
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

// The error for images with a file of the class next to each has the line of Python that lists
// them, and the error for an archive says what to do about it.
func TestWebDataset(t *testing.T) {
	options, dir := isolated(t), t.TempDir()
	for i := range 4 {
		name := filepath.Join(dir, fmt.Sprintf("%03d", i))
		write(t, encoded(t, image.NewGray(image.Rect(0, 0, 8, 8))), name+".jpg")
		write(t, []byte("1"), name+".cls")
	}
	_, err := Open(dir, options)
	wantError(t, err, "classes in a file for each image, such as 000.cls, are not read", "in Python:", fmt.Sprintf("pathlib.Path(%q)", dir), `d.glob("*.jpg")`)

	archive := filepath.Join(dir, "000.tar")
	write(t, nil, archive)
	_, err = Open(archive, options)
	wantError(t, err, "other archives are not read: unpack it and give the directory")
}
