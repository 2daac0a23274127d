package report

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
)

// ReadSubject reads predictions that another program made for the examples that like was made for:
// a text file with a line for each example, in their order, of a probability for each class, apart
// by blanks, commas or semicolons, as numpy.savetxt writes them. Empty lines and those that begin
// with # are skipped. The subject's name is that of the file. Lines of other lengths, fewer or more
// of them, and what is no distribution are errors.
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
	file, err := os.Open(path)
	if err != nil {
		return nil, errors.Wrap(err, "report")
	}
	defer file.Close()
	var probabilities []float64
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t,;", r) })
		if len(fields) != classes {
			return nil, errors.Errorf("report: %s: line %d has %d numbers, want one for each of %d classes", path, number, len(fields), classes)
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
		return nil, errors.Errorf("report: %s: no probabilities, want a line of them for each example", path)
	}
	return probabilities, nil
}
