package datasets

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// idxName matches the names of the files of MNIST and its family, such as
// emnist-letters-train-images-idx3-ubyte.gz: a prefix, the split, images or labels.
var idxName = regexp.MustCompile(`^(?:(.+)[-_])?(train|val|t10k|test)-(images|labels)[-.]idx([134])-ubyte(?:\.gz)?$`)

// idxSplits are the splits by the words in names, with the better word for a split last.
var idxSplits = []struct {
	word  string
	split Split
}{{"train", Train}, {"val", Validation}, {"test", Test}, {"t10k", Test}}

// idxFiles are the files of a data set by Split: of images, and of labels. "" is none.
type idxFiles [3]struct{ images, labels string }

// findIDX returns the IDX files of a directory, by the prefix of their names. If several files
// have the same content, it returns the one whose name locate prefers.
func findIDX(dir string) map[string]*idxFiles {
	entries, err := readDir(dir, "")
	if err != nil {
		return nil
	}
	prefixes := map[string]*idxFiles{}
	for _, named := range idxSplits {
		for _, entry := range slices.Backward(entries) { // of idx3 and idx4, the first wins
			match := idxName.FindStringSubmatch(entry.name)
			if match == nil || match[2] != named.word || entry.isDir {
				continue
			}
			prefix, images := match[1], match[3] == "images"
			if images == (match[4] == "1") {
				continue
			}
			if prefixes[prefix] == nil {
				prefixes[prefix] = &idxFiles{}
			}
			found := &prefixes[prefix][named.split]
			name := strings.TrimSuffix(strings.Replace(entry.name, ".idx", "-idx", 1), ".gz")
			path := locate(dir, name)
			switch {
			case path == "":
			case images:
				found.images = path
			default:
				found.labels = path
			}
		}
	}
	return prefixes
}

func isIDXDir(path string) bool { return isDir(path) && len(findIDX(onlyDir(path))) > 0 }

// readIDXDir reads a directory with IDX files of images [N H W] or [N C H W] of any size, and of
// labels.
func readIDXDir(path string, options Options) (arraySet, error) {
	dir := onlyDir(path)
	set, prefixes := arraySet{hashes: map[string]string{}}, findIDX(dir)
	files, prefix := prefixes[""], ""
	if files == nil {
		all := slices.Sorted(maps.Keys(prefixes))
		if len(all) != 1 {
			return set, errors.Errorf("datasets: %s: must have the IDX files of one data set, got those of %s: use a directory for each",
				dir, strings.Join(all, ", "))
		}
		prefix = all[0]
		files = prefixes[prefix]
	}
	for split, pair := range files {
		if pair.images == "" && pair.labels == "" {
			continue
		}
		if pair.images == "" {
			return set, errors.Errorf("datasets: %s: must have a file of images for the labels, such as %s", pair.labels, "train-images-idx3-ubyte")
		}
		part, err := readIDXImages(pair.images, set.hashes)
		if err != nil {
			return set, err
		}
		if pair.labels != "" {
			count := part.count()
			labels, err := readIDXFile(pair.labels, set.hashes, func(got []int) error {
				if len(got) != 1 || got[0] != count {
					return errors.WithMessagef(dimensionsError(got, count), "%d images", count)
				}
				return nil
			})
			if err != nil {
				return set, err
			}
			part.labels = widened(labels)
		}
		set.parts[split] = part
	}
	if strings.HasPrefix(prefix, "emnist") {
		options.remark("%s: EMNIST stores images transposed, and they are used so", nameOf(path))
	}
	return set, nil
}
