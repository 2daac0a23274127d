package datasets

import "strings"

// splitWords are the names of the splits' directories, in lower case.
var splitWords = [3][]string{
	Train:      {"train", "training"},
	Test:       {"test", "testing"},
	Validation: {"val", "valid", "validate", "validation", "dev", "development", "calibration"},
}

// splitOf returns the split of a directory name and the name's prefix, or -1. The name may end in
// "images", as in train_images.
func splitOf(name string) (Split, string) {
	lower := strings.TrimRight(strings.TrimSuffix(strings.ToLower(name), "images"), "-_. ")
	for split, words := range splitWords {
		for _, word := range words {
			prefix, ok := strings.CutSuffix(lower, word)
			if ok && (prefix == "" || strings.ContainsAny(prefix[len(prefix)-1:], "-_. ")) {
				return Split(split), prefix
			}
		}
	}
	return -1, ""
}

// splitNamed returns the split with a name, in any case, or -1.
func splitNamed(name string) Split {
	split, prefix := splitOf(strings.TrimSpace(name))
	if prefix != "" {
		return -1
	}
	return split
}
