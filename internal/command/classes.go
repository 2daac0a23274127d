package command

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/report"
)

// printClasses prints the number of images of each class, by split if some are held out and there
// are few classes, and remarks on them.
func printClasses(splits *datasets.Splits, c *console) error {
	const most = 12
	counts := splits.ClassCounts()
	if splits.Test == nil && splits.Validation == nil || len(counts.Names) > most {
		c.remark("classes: %s", classCounts(splits.Train))
	} else {
		table, err := classTable(counts)
		if err != nil {
			return err
		}
		var text strings.Builder
		if err := table.WriteText(&text); err != nil {
			return err
		}
		c.remark("%s", strings.TrimSuffix(text.String(), "\n"))
	}
	for _, remark := range counts.Remarks() {
		c.remark("%s: %s", splits.Train.Name, remark)
	}
	return nil
}

// classCounts lists the classes with their numbers of images: all of up to 12, else the first eight
// and the smallest and largest number.
func classCounts(data *datasets.Dataset) string {
	const most, first = 12, 8
	counts := data.Counts()
	var list []string
	for class, count := range counts[:min(len(counts), most)] {
		list = append(list, fmt.Sprintf("%s %d", quotedName(data.ClassNames[class]), count))
	}
	if len(counts) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s, ... (%d to %d images each)", strings.Join(list[:first], ", "), slices.Min(counts), slices.Max(counts))
}

// quotedName returns the name of a class, in quotes if it has a comma or is not printable.
func quotedName(name string) string {
	if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name || strings.Contains(name, ", ") {
		return quoted
	}
	return name
}

// classTable has a row for each class, with its number of images in each split.
func classTable(counts datasets.ClassCounts) (*report.Table, error) {
	var columns []report.Column
	var splits []datasets.Split
	for _, split := range []datasets.Split{datasets.Train, datasets.Validation, datasets.Test} {
		if counts.Counts[split] != nil {
			columns, splits = append(columns, report.Column{Title: split.String()}), append(splits, split)
		}
	}
	table := report.NewTable("class", columns...)
	for class, name := range counts.Names {
		var row []any
		for _, split := range splits {
			row = append(row, strconv.Itoa(counts.Counts[split][class]))
		}
		if err := table.Add(quotedName(name), row...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// countsOf counts the images of a run's data; there are none if the run has no list of them.
func countsOf(run *bayes.Run) (counts datasets.ClassCounts, err error) {
	images, err := run.Splits()
	if os.IsNotExist(errors.Cause(err)) || errors.As(err, new(*bayes.DamagedError)) { // which verify reports
		return counts, nil
	}
	if err != nil {
		return counts, err
	}
	counts.Names = run.Manifest().Data.ClassNames
	numbers := map[string]int{}
	for class, name := range counts.Names {
		numbers[name] = class
	}
	for _, image := range images {
		for split := range counts.Counts {
			class, known := numbers[image.Class]
			if image.Split != datasets.Split(split).String() || !known {
				continue
			}
			if counts.Counts[split] == nil {
				counts.Counts[split] = make([]int, len(counts.Names))
			}
			counts.Counts[split][class]++
		}
	}
	return counts, nil
}

// classSections returns the page's sections on the numbers of images in the data of runs, one for
// each set of numbers that differs.
func classSections(runs []scoredRun) (sections []report.Section, err error) {
	var known []datasets.ClassCounts
	for _, r := range runs {
		counts, err := countsOf(r.run)
		if err != nil {
			return nil, err
		}
		same := func(other datasets.ClassCounts) bool {
			return slices.Equal(other.Names, counts.Names) && slices.EqualFunc(other.Counts[:], counts.Counts[:], slices.Equal)
		}
		if counts.Names == nil || slices.ContainsFunc(known, same) {
			continue
		}
		known = append(known, counts)
		table, err := classTable(counts)
		if err != nil {
			return nil, err
		}
		sections = append(sections, report.Section{Title: "Images", Text: counts.Remarks(), Table: table})
	}
	return sections, nil
}
