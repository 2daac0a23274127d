package rundir

import (
	"errors"
	"testing"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
)

// If a file that the index lists is replaced, and the disk fails after any number of changes to it,
// readers find the old content or the new one, and the file can be replaced again.
func TestReplaceOnAFailingDisk(t *testing.T) {
	full := errors.New("no space left on device")
	for _, name := range []string{CalibrationFile, SplitsFile} {
		for works, done := 0, false; !done; works++ {
			dir := t.TempDir()
			if err := errors.Join(gather(dir), addText(dir, name, "old")); err != nil {
				t.Fatal(err)
			}
			calls := 0
			end := file.Inject(func(_, _ string, bytes int) (int, error) {
				if calls++; calls > works {
					return bytes / 2, full
				}
				return 0, nil
			})
			err := addText(dir, name, "new")
			end()
			if done = err == nil; !done && !errors.Is(err, full) {
				t.Fatalf("%s, %d changes: %v", name, works, err)
			}
			text, err := textOf(dir, name)
			if err != nil || text != "new" && (done || text != "old") {
				t.Errorf("%s, %d changes: content %q, error %v", name, works, text, err)
			}
			if err := addText(dir, name, "newer"); err != nil {
				t.Errorf("%s, %d changes: %v", name, works, err)
			}
			if text, err := textOf(dir, name); err != nil || text != "newer" {
				t.Errorf("%s, %d changes, replaced again: content %q, error %v", name, works, text, err)
			}
		}
	}
}

func addText(dir, name, text string) error {
	remark := func(string) {}
	if name == SplitsFile {
		return AddSplits(dir, []byte(text), remark)
	}
	return AddFile(dir, name, map[string]string{"text": text}, remark)
}

// textOf reads what addText wrote, and checks it as Verify does.
func textOf(dir, name string) (string, error) {
	if name == SplitsFile {
		content, err := ReadSplits(dir)
		return string(content), err
	}
	value := make(map[string]string)
	if err := readJSON(dir, name, &value); err != nil {
		return "", err
	}
	x, err := ReadIndex(dir)
	if err != nil {
		return "", err
	}
	line, err := index.OfJSON(dir, name)
	if err != nil {
		return "", err
	}
	return value["text"], checkListed(name, line.Sum, x)
}
