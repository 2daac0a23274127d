package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"
)

// Fidelity measures how closely the predictions of a student, a distilled network, follow its
// teacher, the posterior predictive.
type Fidelity struct {
	// Data is the name of the held-out data that both predict, and Images their number.
	Data   string `json:"data"`
	Images int    `json:"images"`
	// KL is the mean over the images of the Kullback-Leibler divergence of the student's
	// probabilities from the teacher's, sum_k t_k ln(t_k/s_k), in nats.
	KL float64 `json:"kl"`
	Comparison
	// InformationRank is Spearman's rank correlation of the mutual information of the two, over the
	// images; 0 if one of them is constant.
	InformationRank float64 `json:"mutualInformationRank"`
	// Teacher and Student have the scores of the two, as Assess computes them.
	Teacher Values `json:"teacher"`
	Student Values `json:"student"`
	// Out has the detection performance of the two for each set of out-of-distribution data.
	Out []OutFidelity `json:"out,omitempty"`
}

// OutFidelity measures how well a teacher and its student separate out-of-distribution data from
// the held-out data of a Fidelity, by the names of the OOD scores that both have.
type OutFidelity struct {
	Data    string               `json:"data"`
	Images  int                  `json:"images"`
	Teacher map[string]Detection `json:"teacher"`
	Student map[string]Detection `json:"student"`
}

// FidelityOODScores returns the OOD scores that tables of fidelity list.
func FidelityOODScores() (scores []OODScore) {
	for _, s := range OODScores() {
		if s.Name == "entropy" || s.Name == "mutualInformation" || s.Name == DecisionOODScore {
			scores = append(scores, s)
		}
	}
	return scores
}

// NewFidelity compares the assessments of a teacher and a student on the same data, without
// out-of-distribution data, which AddOut adds. A probability of 0 of the student counts as 1e-12.
func NewFidelity(teacher, student *Assessment) (*Fidelity, error) {
	if teacher == nil || student == nil || teacher.In == nil || student.In == nil {
		return nil, errors.New("evaluate: NewFidelity: assessments and their predictions must not be nil")
	}
	t, s := teacher.In, student.In
	comparison, err := Compare(s.Probabilities, t.Probabilities, t.Classes)
	if err != nil {
		return nil, errors.WithMessage(err, "evaluate: NewFidelity")
	}
	f := &Fidelity{Data: t.Name, Images: t.Len(), Comparison: comparison, Teacher: teacher.Values, Student: student.Values}
	for i, p := range t.Probabilities {
		if p > 0 {
			f.KL += p * math.Log(p/max(s.Probabilities[i], 1e-12)) / float64(t.Len())
		}
	}
	f.KL = max(0, f.KL)
	f.InformationRank, err = rankCorrelation(t.MutualInformation, s.MutualInformation)
	return f, err
}

// AddOut adds the performance of the teacher and the student in detecting out-of-distribution data.
// inTeacher and inStudent are their predictions on the held-out data, teacher and student those on
// the out-of-distribution data.
func (f *Fidelity) AddOut(inTeacher, inStudent, teacher, student *Predictions) error {
	if slices.Contains([]*Predictions{inTeacher, inStudent, teacher, student}, nil) {
		return errors.New("evaluate: AddOut: predictions must not be nil")
	}
	if teacher.Len() != student.Len() {
		return errors.Errorf("evaluate: AddOut: the student must predict the teacher's %d images, got %d", teacher.Len(), student.Len())
	}
	out := OutFidelity{Data: teacher.Name, Images: teacher.Len(), Teacher: map[string]Detection{}, Student: map[string]Detection{}}
	for _, score := range OODScores() {
		if !score.Applies(inTeacher) || !score.Applies(inStudent) || !score.Applies(teacher) || !score.Applies(student) {
			continue
		}
		var err error
		if out.Teacher[score.Name], err = Detect(score.Of(inTeacher), score.Of(teacher)); err != nil {
			return err
		}
		if out.Student[score.Name], err = Detect(score.Of(inStudent), score.Of(student)); err != nil {
			return err
		}
	}
	f.Out = append(f.Out, out)
	return nil
}

// String describes the comparison, without scores.
func (f *Fidelity) String() string {
	return fmt.Sprintf("on %d images of %s: the same class for %.2f %%, total variation %.4f, KL divergence %.4f, rank correlation of mutual information %.3f",
		f.Images, f.Data, 100*f.Agreement, f.TotalVariation, f.KL, f.InformationRank)
}

// FidelityRow is a score of both networks, formatted.
type FidelityRow struct{ Title, Teacher, Student string }

// Rows returns the scores that both have on the held-out data, in the order of Scores.
func (f *Fidelity) Rows() (rows []FidelityRow) {
	for _, score := range Scores() {
		theirs, has := f.Teacher[score.Name]
		ours, hasOurs := f.Student[score.Name]
		if has && hasOurs {
			title := score.titleFor(Case{In: &Predictions{Name: f.Data}})
			rows = append(rows, FidelityRow{title, fmt.Sprintf(score.Format, theirs), fmt.Sprintf(score.Format, ours)})
		}
	}
	return rows
}

// rankCorrelation returns Spearman's rank correlation of two lists of equal length, with the mean
// rank for ties; 0 if one of them is constant. It returns an error for empty lists, different
// lengths and values that are NaN.
func rankCorrelation(a, b []float64) (float64, error) {
	if len(a) != len(b) {
		return 0, errors.Errorf("evaluate: rank correlation: lists must have the same length, got %d and %d", len(a), len(b))
	}
	if err := checkScores("rank correlation", "first", a); err != nil {
		return 0, err
	}
	if err := checkScores("rank correlation", "second", b); err != nil {
		return 0, err
	}
	correlation := stat.Correlation(ranks(a), ranks(b), nil)
	if math.IsNaN(correlation) { // one of them is constant
		return 0, nil
	}
	return correlation, nil
}

// ranks returns the rank of each value, from 0, with the mean rank for ties.
func ranks(values []float64) []float64 {
	order := indices(len(values))
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	ranks := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return ranks
}
