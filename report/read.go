package report

import (
	"bufio"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/file"
)

// ReadSubject reads another program's predictions for the examples of like: a text file with a line
// per example, in the same order, and a probability per class, separated by blanks, commas or
// semicolons, as numpy.savetxt writes them. Empty lines and lines that begin with # are skipped.
// The subject's name is the path. It returns an error for a wrong number of lines or of numbers in
// a line, and if a line is not a distribution.
func ReadSubject(path string, like *evaluate.Predictions) (Subject, error) {
	s := Subject{Name: path, Optimizer: true}
	probabilities, err := readProbabilities(path, like.Classes)
	if err != nil {
		return s, err
	}
	read, err := evaluate.NewPredictions(like.Name, probabilities, like.Labels, like.Classes)
	if err != nil {
		return s, errors.WithMessage(err, path)
	}
	s.Assessment, err = evaluate.Assess(evaluate.Case{In: read})
	return s, err
}

// readProbabilities reads the [N K] numbers of a file, K in each line.
func readProbabilities(path string, classes int) ([]float64, error) {
	opened, err := file.Open(path, 0)
	if err != nil {
		return nil, errors.WithMessage(err, "report")
	}
	defer opened.Close()
	var probabilities []float64
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,;", r) })
		if len(fields) != classes {
			return nil, errors.Errorf("report: %s: line %d must have %[4]d numbers, one per class, got %[3]d", path, number, len(fields), classes)
		}
		for _, field := range fields {
			p, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return nil, errors.Wrapf(err, "report: %s: line %d", path, number)
			}
			probabilities = append(probabilities, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Wrapf(err, "report: %s", path)
	}
	if probabilities == nil {
		return nil, errors.Errorf("report: %s: must have a line of probabilities per example, got none", path)
	}
	return probabilities, nil
}
