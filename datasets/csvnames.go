package datasets

import (
	"path/filepath"
	"slices"
	"strings"
)

// csvStem returns a file's name in lower case without .csv or .csv.gz, and whether it ended in
// one.
func csvStem(path string) (string, bool) {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".gz")
	return strings.CutSuffix(name, ".csv")
}

// The headings of the columns of a label table, in lower case, in order of preference.
var (
	fileHeadings = []string{
		"filename", "file", "path", "image", "image_path", "img_path", "file_name", "file_path", "filepath", "image_name", "image_file", "image_id", "img",
	}
	classHeadings = []string{"classid", "class", "label", "category", "class_id", "class_name", "label_name", "labels", "target"}
	splitHeadings = []string{"split", "subset", "partition", "set", "fold"}
)

// column returns the column with the first of the wanted headings, or -1.
func column(names, wanted []string) int {
	for _, heading := range wanted {
		if at := slices.Index(names, heading); at >= 0 {
			return at
		}
	}
	return -1
}
