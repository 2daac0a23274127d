package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/evaluate"
)

// CoverageRemarks returns sentences, without the full stop, on how the coverage of a subject's
// prediction sets differs between classes.
func (s Subject) CoverageRemarks() ([]string, error) {
	worst, err := s.worstCoverage()
	if err != nil {
		return nil, err
	}
	fallbacks, err := s.fallbacks()
	return slices.DeleteFunc([]string{worst, fallbacks}, func(text string) bool { return text == "" }), err
}

// fallbacks names the classes that have no threshold of their own for class-conditional sets, or
// returns "".
func (s Subject) fallbacks() (string, error) {
	if s.Assessment == nil || s.Calibration == nil || !s.Calibration.Supports(evaluate.Level) {
		return "", nil
	}
	sets, err := s.Calibration.Sets(evaluate.Level, s.Sets)
	if err != nil {
		return "", err
	}
	return FallbackText(sets, s.InImages.className), nil
}

// FallbackText names the classes that have no threshold of their own for class-conditional sets, or
// returns "". name returns the name of a class.
func FallbackText(sets *evaluate.Sets, name func(class int) string) string {
	var classes []string
	for _, t := range sets.Fallbacks() {
		classes = append(classes, fmt.Sprintf("%s (%d of %d)", name(t.Class), t.Examples, t.Needed))
	}
	if classes == nil {
		return ""
	}
	unit := "images"
	if sets.Grouped {
		unit = "groups of images"
	}
	return fmt.Sprintf("too few %s of these classes are held out for a threshold of their own at level %g, so they have the threshold of all classes, "+
		"which promises nothing for each of them: %s", unit, sets.Level, strings.Join(classes, ", "))
}

// subjectsInFull is the number of subjects that have all columns in the table of classes. With more
// of them, or with long names, it would be wider than a page, and has recall and coverage only.
const subjectsInFull = 2

// classesShown is the number of classes in the table of classes.
const classesShown = 30

// ByClass returns the scores of the subject's classes, with their names; nil without labels.
func (s Subject) ByClass() ([]ClassRow, error) {
	rows, err := s.byClass()
	for i := range rows {
		if r, ok := evaluate.RankingOf(s.In, rows[i].Class); ok {
			rows[i].Ranking = &r
		}
	}
	return rows, err
}

// byClass is ByClass without rankings, which take longer.
func (s Subject) byClass() ([]ClassRow, error) {
	if s.Assessment == nil || s.In == nil {
		return nil, nil
	}
	scores, err := evaluate.ByClass(s.Case)
	rows := make([]ClassRow, len(scores))
	for i, of := range scores {
		rows[i] = ClassRow{Name: s.InImages.className(of.Class), ClassScores: of}
	}
	return rows, err
}

// ClassRow has the scores of a class.
type ClassRow struct {
	Name string `json:"class"`
	evaluate.ClassScores
	*evaluate.Ranking // nil if there is no other class
}

// muchBelow is a difference from the promised coverage that matters in practice.
const muchBelow = 0.05

// worstCoverage describes the coverage of the class where it is lowest or, if the sets do not hold
// on average either, of all. It is "" if no class is covered less often than promised, or if there
// is no coverage of several classes.
func (s Subject) worstCoverage() (string, error) {
	rows, err := s.byClass()
	if err != nil || len(rows) < 2 {
		return "", err
	}
	scores := make([]evaluate.ClassScores, len(rows))
	for i, row := range rows {
		scores[i] = row.ClassScores
	}
	worst, ok := evaluate.WorstCovered(scores)
	if !ok || *worst.Coverage >= evaluate.Level {
		return "", nil
	}
	if all := allClasses(scores); *all.Coverage < evaluate.Level-muchBelow && all.BelowChance(1, s.Calibration.Examples) {
		return fmt.Sprintf("its %.0f %% sets contain the class of only %.1f %% of these %d images, because they do not resemble the calibration images. "+
			"To get sets that hold, calibrate the run on images like these: see pollen calibrate", 100*evaluate.Level, 100**all.Coverage, all.Examples), nil
	}
	at := slices.IndexFunc(rows, func(r ClassRow) bool { return r.Class == worst.Class })
	covered := int(*worst.Coverage*float64(worst.Examples) + 0.5)
	text := fmt.Sprintf("of %d classes, %s has the lowest coverage of %.0f %% sets, %.3f: %d of %d images", len(rows), rows[at].Name,
		100*evaluate.Level, *worst.Coverage, covered, worst.Examples)
	if worst.Threshold == nil && worst.BelowChance(len(rows), s.Calibration.Examples) {
		text += ", fewer than by chance. The sets hold on average over all images, not for each class"
	}
	return text, nil
}

// allClasses returns the number of images of all classes that have a coverage, and their coverage.
func allClasses(scores []evaluate.ClassScores) evaluate.ClassScores {
	all, covered := evaluate.ClassScores{}, 0.0
	for _, s := range scores {
		if s.Coverage != nil {
			all.Examples += s.Examples
			covered += *s.Coverage * float64(s.Examples)
		}
	}
	all.Coverage = new(covered / float64(all.Examples))
	return all
}

// classColumn is a column of each subject in the table of classes.
type classColumn struct {
	Column
	inFull, ofSets bool // whether it is only in the full table, and needs the sets of all images
	of             func(r ClassRow) any
}

var classColumns = []classColumn{
	{Column{"precision", "%.3f"}, true, false, func(r ClassRow) any { return r.Precision }},
	{Column{"recall", "%.3f"}, false, false, func(r ClassRow) any { return r.Recall }},
	{Column{"F1", "%.3f"}, true, false, func(r ClassRow) any { return r.F1 }},
	// AUROC is about out-of-distribution data elsewhere. A table has several classes, so that there
	// is a ranking.
	{Column{"one-vs-rest AUC", "%.3f"}, true, false, func(r ClassRow) any { return r.AUROC }},
	{Column{"coverage", "%.3f"}, false, true, func(r ClassRow) any { return *r.Coverage }},
	{Column{"set size", "%.2f"}, true, true, func(r ClassRow) any { return *r.SetSize }},
}

// columnsOfClasses returns the columns of the table of classes, and the columns of each subject
// among them.
func columnsOfClasses(subjects []Subject, covered, full bool) (all []Column, ofSubject []classColumn) {
	for _, c := range classColumns {
		if (full || !c.inFull) && (covered || !c.ofSets) {
			ofSubject = append(ofSubject, c)
		}
	}
	all = []Column{{"images", "%.0f"}}
	for _, prefix := range ShortNames(namesOf(subjects)) {
		prefix += ", "
		if len(subjects) == 1 {
			prefix = ""
		}
		for _, c := range ofSubject {
			all = append(all, Column{prefix + c.Title, c.Format})
		}
	}
	return all, ofSubject
}

// tooWide reports whether the titles of the columns would not fit into a line of a terminal.
func tooWide(columns []Column) bool {
	const widest = 140
	width := 0
	for _, c := range columns {
		width += 2 + cellWidth(c.Title)
	}
	return width > widest
}

// classEntry has the scores of a class.
type classEntry struct {
	rows  []ClassRow // by subject
	worst float64    // coverage, or recall
}

// classEntries returns the classes of subjects with the same labels: those with the lowest coverage
// first or, if covered is false because some have none, the lowest recall.
func classEntries(subjects []Subject) (entries []classEntry, covered bool, err error) {
	covered = true
	for i, s := range subjects {
		rows, err := s.ByClass()
		if err != nil {
			return nil, false, err
		}
		if i == 0 {
			entries = make([]classEntry, len(rows))
		}
		for k, row := range rows {
			covered = covered && row.Coverage != nil
			entries[k].rows = append(entries[k].rows, row)
		}
	}
	value := func(r ClassRow) float64 {
		if covered {
			return *r.Coverage
		}
		return r.Recall
	}
	for k := range entries {
		entries[k].worst = value(slices.MinFunc(entries[k].rows, func(a, b ClassRow) int { return cmp.Compare(value(a), value(b)) }))
	}
	slices.SortStableFunc(entries, func(a, b classEntry) int { return cmp.Compare(a.worst, b.worst) })
	return entries, covered, nil
}

// ClassSection returns the section with a table of the classes, those with the lowest coverage
// first, or the lowest recall without coverage; nil without labels of several classes.
func ClassSection(subjects []Subject) (*Section, error) {
	if !all(subjects, Subject.labelled) || !sameData(subjects) || !sameClasses(subjects) {
		return nil, nil
	}
	entries, covered, err := classEntries(subjects)
	if err != nil || len(entries) < 2 {
		return nil, err
	}
	var texts []string
	for _, s := range subjects {
		remarks, err := s.CoverageRemarks()
		if err != nil {
			return nil, err
		}
		for _, remark := range remarks {
			texts = append(texts, s.Name+": "+remark+".")
		}
	}
	columns, ofSubject := columnsOfClasses(subjects, covered, true)
	full := !tooWide(columns) && len(subjects) <= subjectsInFull
	if !full {
		columns, ofSubject = columnsOfClasses(subjects, covered, false)
	}
	if n := len(entries); n > classesShown {
		texts = append(texts, fmt.Sprintf("The %d lowest of %d classes are shown; pollen eval --json lists all.", classesShown, n))
		entries = entries[:classesShown]
	}
	if more := "Precision, F1 and one-vs-rest AUC"; !full {
		if covered {
			more = "Precision, F1, one-vs-rest AUC and sizes of sets"
		}
		texts = append(texts, more+" are in the output of pollen eval --json.")
	}
	table := NewTable("class", columns...)
	for _, e := range entries {
		cells := []any{float64(e.rows[0].Examples)}
		for _, row := range e.rows {
			for _, c := range ofSubject {
				cells = append(cells, c.of(row))
			}
		}
		if err := table.Add(e.rows[0].Name, cells...); err != nil {
			return nil, err
		}
	}
	return &Section{Title: "Classes", Table: table, Text: texts}, nil
}
