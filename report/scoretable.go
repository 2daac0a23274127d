package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
)

// ScoreTable returns the scores as a table with a row for each score that applies to any subject
// and a column for each assessed subject. It returns nil if no subject was assessed.
func ScoreTable(subjects []Subject) (*Table, error) {
	var names []string
	var assessments [][]*evaluate.Assessment
	for _, s := range subjects {
		if s.Assessment != nil {
			names = append(names, s.Name)
			assessments = append(assessments, []*evaluate.Assessment{s.Assessment})
		}
	}
	return scoresOver("score", names, assessments)
}

// maxColumns is the largest number of subjects for which FittingTable has a column each.
const maxColumns = 4

// FittingTable returns ScoreTable for up to four subjects and runTable for more, so that tables fit
// on a screen.
func FittingTable(subjects []Subject) (*Table, error) {
	if len(subjects) <= maxColumns {
		return ScoreTable(subjects)
	}
	return runTable(subjects)
}

// runTable returns the scores as a table with a row for each subject and a column for each score
// that applies to any of them. All subjects must be assessed.
func runTable(subjects []Subject) (*Table, error) {
	in, out := dataNames(subjects)
	scores := scoresOf(subjects)
	var columns []Column
	for _, score := range scores {
		columns = append(columns, Column{namedData(score.Title, in, out), score.Format})
	}
	return tableOf("run", namesOf(subjects), columns, func(subject, score int) any {
		if value, ok := subjects[subject].Values[scores[score].Name]; ok {
			return value
		}
		return "-"
	})
}

// scoresOf returns the scores that apply to any of the subjects.
func scoresOf(subjects []Subject) []evaluate.Score {
	return slices.DeleteFunc(evaluate.Scores(), func(score evaluate.Score) bool {
		return all(subjects, func(s Subject) bool {
			if s.Assessment == nil {
				return true
			}
			_, has := s.Values[score.Name]
			return !has
		})
	})
}

// tableOf returns a table with the given cell in each row and column.
func tableOf(corner string, rows []string, columns []Column, cell func(row, column int) any) (*Table, error) {
	table := NewTable(corner, columns...)
	for i, name := range rows {
		cells := make([]any, len(columns))
		for k := range cells {
			cells[k] = cell(i, k)
		}
		if err := table.Add(name, cells...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// Agreements compares the subjects' predictions with the predictions of the subject named against.
// The result is by subject name, without that subject, and empty if against is "". It returns an
// error if there is nothing to compare.
func Agreements(subjects []Subject, against string) (map[string]*evaluate.Comparison, error) {
	near := map[string]*evaluate.Comparison{}
	if against == "" {
		return near, nil
	}
	at := slices.IndexFunc(subjects, func(s Subject) bool { return s.Name == against })
	if at < 0 || subjects[at].in() == nil {
		return nil, errors.Errorf("report: Agreements: %q must have predictions", against)
	}
	reference := subjects[at].In
	for i, s := range subjects {
		if i == at || s.in() == nil {
			continue
		}
		c, err := evaluate.Compare(s.In.Probabilities, reference.Probabilities, reference.Classes)
		if err != nil {
			return nil, errors.WithMessagef(err, "%s against %s", s.Name, against)
		}
		near[s.Name] = &c
	}
	if len(near) == 0 {
		return nil, errors.Errorf("report: Agreements: another subject than %q must have predictions", against)
	}
	return near, nil
}

// AgreementTable returns Agreements as a table: the fraction of examples with the same most
// probable class, and the mean total variation. It returns nil if against is "".
func AgreementTable(subjects []Subject, against string) (*Table, error) {
	near, err := Agreements(subjects, against)
	if err != nil || len(near) == 0 {
		return nil, err
	}
	table := NewTable("against "+against, Column{Title: "agreement", Format: "%.3f"}, Column{Title: "total variation", Format: "%.4f"})
	for _, s := range subjects {
		if c := near[s.Name]; c != nil {
			if err := table.Add(s.Name, c.Agreement, c.TotalVariation); err != nil {
				return nil, err
			}
		}
	}
	return table, nil
}

// SeedsTable returns the mean scores, with standard errors, of groups of subjects that differ only
// in their seed: a column for each group of at least two seeds, named after its first subject. If
// subjects have the same seed, only the first counts. It returns nil if there is no group.
func SeedsTable(subjects []Subject) (*Table, error) {
	groups, names := map[string][]*evaluate.Assessment{}, map[string]string{}
	var order []string
	for i, s := range subjects {
		again := func(t Subject) bool { return t.SeedGroup == s.SeedGroup && t.Seed == s.Seed && t.Assessment != nil }
		if s.SeedGroup == "" || s.Assessment == nil || slices.ContainsFunc(subjects[:i], again) {
			continue
		}
		if groups[s.SeedGroup] == nil {
			order, names[s.SeedGroup] = append(order, s.SeedGroup), s.Name
		}
		groups[s.SeedGroup] = append(groups[s.SeedGroup], s.Assessment)
	}
	var titles []string
	var several [][]*evaluate.Assessment
	for _, kind := range order {
		if group := groups[kind]; len(group) > 1 {
			titles, several = append(titles, fmt.Sprintf("%s, %d seeds", names[kind], len(group))), append(several, group)
		}
	}
	return scoresOver("mean over seeds", titles, several)
}

// scoresOver returns a table with a row for each score that applies to any of the groups.
func scoresOver(corner string, names []string, groups [][]*evaluate.Assessment) (*Table, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	columns := make([]Column, len(names))
	var subjects []Subject
	for i, name := range names {
		columns[i].Title = name
		for _, a := range groups[i] {
			subjects = append(subjects, Subject{Assessment: a})
		}
	}
	in, out := dataNames(subjects)
	table := NewTable(corner, columns...)
	for _, score := range evaluate.Scores() {
		cells := make([]any, len(groups))
		applies := false
		for i, group := range groups {
			over := score.Over(group)
			cells[i], applies = over, applies || over != "-"
		}
		if !applies {
			continue
		}
		if err := table.Add(namedData(score.Title, in, out), cells...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// DetectionTable returns the out-of-distribution detection of each OOD score that applies: AUROC,
// AUPR and FPR95 of one subject, or only the AUROC of each of several, which keeps the table
// short. The positive class is Out, except where "in" is added. Unless every is true, the scores
// are the one that decides, entropy, and the few best. It returns nil if no subject has an Out.
func DetectionTable(subjects []Subject, every bool) (*Table, error) {
	subjects = slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool { return s.out() == nil })
	scores := slices.DeleteFunc(evaluate.OODScores(), func(score evaluate.OODScore) bool {
		return all(subjects, func(s Subject) bool { _, has := s.Detections[score.Name]; return !has })
	})
	if !every {
		scores = fewScores(subjects, scores)
	}
	switch {
	case len(subjects) == 0:
		return nil, nil
	case len(subjects) == 1:
		table := NewTable("OOD score", Column{"AUROC", "%.4f"}, Column{"AUPR out", "%.4f"}, Column{"AUPR in", "%.4f"},
			Column{"FPR95", "%.3f"}, Column{"FPR95 in", "%.3f"})
		for _, score := range scores {
			d := subjects[0].Detections[score.Name]
			if err := table.Add(score.Title, d.AUROC, d.AUPROut, d.AUPRIn, d.FPR95, d.FPR95In); err != nil {
				return nil, err
			}
		}
		return table, nil
	}
	return aurocTable(subjects, scores)
}

// bestScores is the number of scores that fewScores takes for their AUROC.
const bestScores = 3

// fewScores returns, in their order, the score that decides what is in distribution, entropy, and
// the few with the highest mean AUROC over the subjects.
func fewScores(subjects []Subject, scores []evaluate.OODScore) []evaluate.OODScore {
	mean := func(score evaluate.OODScore) (sum float64) {
		for _, s := range subjects {
			sum += s.Detections[score.Name].AUROC
		}
		return sum
	}
	best := slices.Clone(scores)
	slices.SortStableFunc(best, func(a, b evaluate.OODScore) int { return cmp.Compare(mean(b), mean(a)) })
	best = best[:min(bestScores, len(best))]
	return slices.DeleteFunc(slices.Clone(scores), func(score evaluate.OODScore) bool {
		same := func(other evaluate.OODScore) bool { return other.Name == score.Name }
		return score.Name != evaluate.DecisionOODScore && score.Name != evaluate.DefaultOODScore && !slices.ContainsFunc(best, same)
	})
}

// aurocTable returns the AUROC of each subject by each score: a column for each of up to four
// subjects, or a row for each of more.
func aurocTable(subjects []Subject, scores []evaluate.OODScore) (*Table, error) {
	auroc := func(subject, score int) any {
		if d, has := subjects[subject].Detections[scores[score].Name]; has {
			return d.AUROC
		}
		return "-"
	}
	var titles []string
	var byScore, bySubject []Column
	for _, score := range scores {
		titles, byScore = append(titles, score.Title), append(byScore, Column{score.Title, "%.4f"})
	}
	names := namesOf(subjects)
	if len(subjects) > maxColumns {
		return tableOf("run, AUROC by", names, byScore, auroc)
	}
	for _, name := range names {
		bySubject = append(bySubject, Column{name, "%.4f"})
	}
	return tableOf("AUROC by", titles, bySubject, func(score, subject int) any { return auroc(subject, score) })
}

// meaningsOf returns an explanation of each score that applies to any of the subjects.
func meaningsOf(subjects []Subject) []string {
	in, out := dataNames(subjects)
	var meanings []string
	for _, score := range scoresOf(subjects) {
		meanings = append(meanings, namedData(score.Title+": "+score.Meaning, in, out))
	}
	return meanings
}

// scoreSections returns the page's sections of scores, or nil if no subject was assessed.
func scoreSections(subjects []Subject) ([]Section, error) {
	scores, err := ScoreTable(subjects)
	if err != nil || scores == nil {
		return nil, err
	}
	sections := []Section{{Title: "Scores", Table: scores, Notes: meaningsOf(subjects)}}
	for _, sectionOf := range []func([]Subject) (*Section, error){ClassSection, riskSection, detectionSection, selfTestSection} {
		section, err := sectionOf(subjects)
		if err != nil {
			return nil, err
		}
		if section != nil {
			sections = append(sections, *section)
		}
	}
	return sections, nil
}

// detectionSection returns the section with the DetectionTable of all scores, or nil.
func detectionSection(subjects []Subject) (*Section, error) {
	table, err := DetectionTable(subjects, true)
	if table == nil {
		return nil, err
	}
	_, out := dataNames(subjects)
	return &Section{
		Title: "Out-of-distribution detection", Table: table,
		Text: []string{"How well each score detects " + out + " as out of distribution (the positive class)."},
	}, nil
}
