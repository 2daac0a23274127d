package llckept

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/samples"
)

// record is a file: rows of an estimate, and what they depend on, by the names of the flags of
// pollen llc. Step sizes and the number of reference draws are not
// among these, because each row has its own.
type record struct {
	Options map[string]string `json:"options"`
	llc.Kept
}

// name returns the file's name, which depends on the options only.
func (k record) name() (string, error) {
	text, err := json.Marshal(k.Options)
	return fmt.Sprintf("%x.json", sha256.Sum256(text))[48:], errors.Wrap(err, "pollen: llc")
}

// differences describes the options that differ from another record's.
func (k record) differences(other record) (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(k.Options)) {
		if theirs := other.Options[name]; theirs != k.Options[name] {
			texts = append(texts, fmt.Sprintf("%s is %s in it, not %s", name, theirs, k.Options[name]))
		}
	}
	return texts
}

// Keep makes an estimate begin with what an earlier one with the same settings kept in dir, and
// keep its own there. It remarks on what it continues, and on what it cannot read or write.
func Keep(o *llc.Options, dir string, settings map[string]string, remark func(text string)) error {
	own := record{Options: settings}
	name, err := own.name()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, name)
	kept, err := read(path)
	switch {
	case err == nil:
		remark(fmt.Sprintf("continuing after %s of an earlier call; remove %s to estimate again", stepSizes(kept), path))
		o.Kept = kept.Kept
	case os.IsNotExist(errors.Cause(err)):
		if text := closest(own, dir); text != "" {
			remark(text)
		}
	default:
		remark(fmt.Sprintf("%v; all step sizes are estimated again", err))
	}
	failed := false
	o.Keep = func(k llc.Kept) {
		own.Kept = k
		if err := write(path, own); err != nil && !failed {
			failed = true
			remark(fmt.Sprintf("step sizes are not kept, and another call estimates them again: %v", err))
		}
	}
	return nil
}

// closest returns a remark on the record in dir whose options differ least from own's; "" if there
// is none.
func closest(own record, dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil { // there is none
		return ""
	}
	var closest string
	var differ []string
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		other, err := read(path)
		if err != nil {
			continue
		}
		if texts := own.differences(other); closest == "" || len(texts) < len(differ) {
			closest = fmt.Sprintf("%s, with %s,", path, stepSizes(other))
			differ = texts
		}
	}
	if closest == "" {
		return ""
	}
	return fmt.Sprintf("%s is another estimate's, and not used: %s", closest, strings.Join(differ, "; "))
}

// stepSizes returns what a record has, in words.
func stepSizes(k record) string {
	switch len(k.Rows) {
	case 0:
		return "the descent"
	case 1:
		return "1 step size"
	}
	return fmt.Sprintf("%d step sizes", len(k.Rows))
}

// offsetStore returns the directory, and the file in it, of the end of the descent that belongs to
// the record at path.
func offsetStore(path string) (dir, file string) {
	dir = strings.TrimSuffix(path, ".json")
	return dir, filepath.Join(dir, samples.FileName(0, 0))
}

func read(path string) (k record, err error) {
	content, err := file.Read(path, file.MaxJSON)
	if err == nil {
		_, err = checksum.Check(content, len(content))
	}
	if err == nil {
		err = errors.WithStack(json.Unmarshal(content, &k))
	}
	if err == nil && k.Options["descent"] != "0" {
		_, at := offsetStore(path)
		end, reading := samples.ReadSample(at)
		if reading != nil { // a missing file is damage, and not a missing record
			err = errors.Errorf("the end of the descent: %v", reading)
		}
		k.Offset = end.Parameters
	}
	return k, errors.WithMessagef(err, "pollen: llc: %s", path)
}

func write(path string, k record) error {
	content, err := checksum.JSON(k, "")
	if err == nil {
		err = file.MakeDir(filepath.Dir(path))
	}
	if err == nil && k.Offset != nil {
		dir, _ := offsetStore(path)
		if err = file.MakeDir(dir); err == nil {
			err = samples.NewStore(dir).Add(samples.Sample{Weight: 1, Parameters: k.Offset})
		}
	}
	if err != nil {
		return err
	}
	return file.Write(path, content)
}
