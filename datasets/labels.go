package datasets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// numberLabels replaces the labels of all parts by class numbers 0, 1, ... and returns the names of
// the classes: the labels of the training images, in order, or of all images if there are no
// training images. Labels from 1, and labels that no image has, are remarks. A label that no
// training image has is an error, as it is for directories of classes.
func numberLabels(path string, parts [3]*arrayPart, options Options) ([]string, error) {
	used := make([]bool, maxClasses)
	for _, part := range present(defining(parts)) {
		for _, label := range part.labels {
			if label >= maxClasses {
				return nil, errors.Errorf("datasets: %s: labels must be below %[3]d, got %[2]d", path, label, maxClasses)
			}
			used[label] = true
		}
	}
	numbers := make([]int32, maxClasses)
	var with, without []int
	for label, is := range used {
		if is {
			numbers[label] = int32(len(with))
			with = append(with, label)
		}
	}
	for label := range with[len(with)-1] {
		if !used[label] {
			without = append(without, label)
		}
	}
	if parts[Train] != nil {
		remarkLabels(path, with, without, options)
	}
	for split, part := range present(parts) {
		for i, label := range part.labels {
			if label >= maxClasses || !used[label] {
				return nil, errors.Errorf("datasets: %s: the labels of %s images must be among those of the training images, %s, got %d for image %d",
					path, split, ranges(with), label, i)
			}
			part.labels[i] = numbers[label]
		}
	}
	names := make([]string, len(with))
	for class, label := range with {
		names[class] = strconv.Itoa(label)
	}
	return names, nil
}

// defining returns the parts whose labels are the classes: the training images, or all images if
// there are no training images.
func defining(parts [3]*arrayPart) [3]*arrayPart {
	if parts[Train] != nil {
		return [3]*arrayPart{Train: parts[Train]}
	}
	return parts
}

// nameLabels replaces labels that are text by class numbers, and returns the names of the classes:
// the labels of the training images, in order, or of all images if there are no training images.
// The names are nil if labels are numbers, see numberLabels. An empty text is no label.
func nameLabels(path string, parts [3]*arrayPart) ([]string, error) {
	texts, numbers := "", ""
	for _, part := range present(parts) {
		switch {
		case part.labels == nil:
		case part.labelNames != nil:
			texts = part.name
		default:
			numbers = part.name
		}
	}
	if texts == "" {
		return nil, nil
	}
	if numbers != "" {
		return nil, errors.Errorf("datasets: the labels of all splits must be text, or all of them integers, got text for %s and integers for %s", texts, numbers)
	}
	var names []string
	for _, part := range present(defining(parts)) {
		for _, name := range part.labelNames {
			if name = canonicalClass(name); name != "" {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, compareClasses)
	names = slices.Compact(names)
	if len(names) > maxClasses {
		return nil, errors.Errorf("datasets: %s: must have at most %d classes, got %d", path, maxClasses, len(names))
	}
	for _, name := range names {
		if err := checkClass(name); err != nil {
			return nil, errors.WithMessagef(err, "datasets: %s", path)
		}
	}
	for split, part := range present(parts) {
		if part.labels == nil {
			continue
		}
		numbers := make([]int32, len(part.labelNames))
		for i, name := range part.labelNames {
			if canonicalClass(name) == "" {
				numbers[i] = noLabel
				continue
			}
			at, found := slices.BinarySearchFunc(names, canonicalClass(name), compareClasses)
			if !found {
				return nil, errors.Errorf("datasets: %s: the labels of %s images must be among those of the training images, %s, got %q",
					path, split, abbreviated(names), name)
			}
			numbers[i] = int32(at)
		}
		for i, label := range part.labels {
			if label != noLabel {
				part.labels[i] = numbers[label]
			}
		}
	}
	return names, nil
}

// remarkLabels remarks on labels below the largest one that no training image has.
func remarkLabels(path string, with, without []int, options Options) {
	if len(without) == 0 {
		return
	}
	ignored := ""
	if largest := with[len(with)-1]; largest == 255 && without[len(without)-1] == 254 {
		ignored = "; 255 may be -1 as an unsigned byte: leave this class out if it marks images without a label"
	}
	options.remark("%s: no training image has %s: the classes are the labels %s%s", nameOf(path), labelsText(without), ranges(with), ignored)
}

// unusedLabels returns a remark if there are labels below the number of classes that no image has.
func unusedLabels(name string, labels []int32, classes int) []string {
	without := absent(labels, classes)
	if without == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: no image has %s", name, labelsText(without))}
}

// absent returns the numbers below classes that are not among labels. Some labels may be negative.
func absent(labels []int32, classes int) (without []int) {
	present := make([]bool, classes)
	for _, label := range labels {
		if label >= 0 {
			present[label] = true
		}
	}
	for label, is := range present {
		if !is {
			without = append(without, label)
		}
	}
	return without
}

// labelsText lists labels, as in "the labels 0, 3 to 9".
func labelsText(labels []int) string {
	if len(labels) == 1 {
		return "the label " + ranges(labels)
	}
	return "the labels " + ranges(labels)
}

// remarkClasses remarks on named classes that no training image has.
func remarkClasses(path string, train *arrayPart, names []string, options Options) {
	var without []string
	for _, class := range absent(train.labels, len(names)) {
		without = append(without, names[class])
	}
	if len(without) > 0 {
		options.remark("%s: no training image has the class %s", nameOf(path), abbreviated(without))
	}
}

// ranges lists increasing numbers, with consecutive ones joined, as in "0, 2 to 9, 11".
func ranges(numbers []int) string {
	var texts []string
	for from := 0; from < len(numbers); {
		to := from
		for to+1 < len(numbers) && numbers[to+1] == numbers[to]+1 {
			to++
		}
		switch {
		case to == from:
			texts = append(texts, strconv.Itoa(numbers[from]))
		case to == from+1:
			texts = append(texts, strconv.Itoa(numbers[from]), strconv.Itoa(numbers[to]))
		default:
			texts = append(texts, strconv.Itoa(numbers[from])+" to "+strconv.Itoa(numbers[to]))
		}
		from = to + 1
	}
	const shown = 8
	if len(texts) > shown {
		texts = append(texts[:shown], "...")
	}
	return strings.Join(texts, ", ")
}
