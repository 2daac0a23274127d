package datasets

import (
	"path"
	"strings"
)

// sequenceOf returns the part of an image's file name before its last number, such as
// rose/clip07-frame of rose/clip07-frame12.png, or "" if it has no number there.
func sequenceOf(file string) string {
	name := strings.TrimSuffix(file, path.Ext(file))
	last := strings.TrimRight(name, digits)
	if last == name || !strings.ContainsAny(last, digits) {
		return ""
	}
	return last
}

const digits = "0123456789"

// sequencePattern is the Options.Group of the sequences that sequenceOf finds, and
// acrossClassesPattern of those that it finds without the directory of the class.
const (
	sequencePattern      = `^(.*\D)\d+\.`
	acrossClassesPattern = `^[^/]*/(.*\D)\d+\.`
)

// sequencesCrossClasses reports whether images of one sequence, such as a patient's, have several
// classes: whether classes share sequences, once their directories are removed from the names, but
// no name. If numbers start again in each class, they share names, too.
func sequencesCrossClasses(splits *Splits) (crosses bool) {
	names, classes := map[string]bool{}, map[string]int32{}
	for _, d := range splits.all() {
		if d.Labels == nil {
			continue
		}
		for i, file := range d.Files {
			_, name, ok := strings.Cut(file, "/")
			sequence := sequenceOf(name)
			if !ok || names[name] {
				return false
			}
			if sequence == "" {
				continue
			}
			names[name] = true
			class, known := classes[sequence]
			crosses = crosses || known && class != d.Labels[i]
			classes[sequence] = d.Labels[i]
		}
	}
	return crosses
}

// remarkSequences remarks on file names that look like the frames of several videos of each
// class, or the like, if some of them were drawn into several splits.
func remarkSequences(splits *Splits, options Options) {
	const shortest, share = 3, 0.9 // images of a sequence; the least fraction of images in sequences
	counts, spread := map[string][3]int{}, 0
	crosses, pattern, all := sequencesCrossClasses(splits), sequencePattern, 0
	if crosses {
		pattern = acrossClassesPattern
	}
	for split, d := range splits.all() {
		all += d.Len()
		for _, file := range d.Files {
			if crosses {
				_, file, _ = strings.Cut(file, "/")
			}
			if sequence := sequenceOf(file); sequence != "" {
				count := counts[sequence]
				count[split]++
				counts[sequence] = count
			}
		}
	}
	// Only images of a sequence whose other images are in training can be like those: if the data
	// have the splits, each directory train/CLASS and test/CLASS may look like a sequence.
	sequences, trained, images, first := 0, 0, 0, ""
	for sequence, count := range counts {
		sum := count[Train] + count[Test] + count[Validation]
		if sum < shortest {
			continue
		}
		sequences++
		if count[Train] > 0 {
			trained++
		}
		images += sum
		if max(count[Train], count[Test], count[Validation]) < sum {
			if spread++; first == "" || sequence < first {
				first = sequence
			}
		}
	}
	if spread > 0 && float64(images) >= share*float64(all) && trained >= 2*splits.Train.Classes {
		options.remark("%s: file names look like %d sequences of images, and %d of them are in several splits, such as %s...: "+
			"if the images of a sequence are alike, scores and guarantees are too good; keep each in one split with the group %s",
			splits.first().Name, sequences, spread, first, pattern)
	}
}
