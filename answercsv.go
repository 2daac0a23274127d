package pollen

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// WriteCSV writes answers as CSV, a row for each, with a column for the probability of each class.
//
// prediction_set has the classes of the set, joined by semicolons and quoted as in CSV where a name
// has a semicolon or a quote. set_size is their number: 0 for an empty set, and blank if there is
// no prediction set. in_distribution is blank if it is unknown. A row with an error has only its
// file.
func WriteCSV(to io.Writer, answers []Answer, classes []string) error {
	rows := csv.NewWriter(to)
	header := []string{"file", "class", "confidence", "entropy", "mutual_information", "prediction_set", "set_size", "in_distribution", "error"}
	fixed := len(header)
	for _, class := range classes {
		header = append(header, "p("+class+")")
	}
	if err := rows.Write(header); err != nil {
		return errors.Wrap(err, "pollen: csv")
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for i, a := range answers {
		row := make([]string, fixed, len(header))
		row[0], row[8] = a.File, a.Error
		if a.Error != "" {
			row = row[:len(header)]
		} else {
			if len(a.Probabilities) != len(classes) {
				return invalid("csv: answer %d has %d probabilities, must have one for each of %d classes", i, len(a.Probabilities), len(classes))
			}
			row[1], row[2], row[3], row[4] = a.Class, number(a.Confidence), number(a.Entropy), number(a.MutualInformation)
			if a.PredictionSet != nil {
				row[5], row[6] = joined(a.PredictionSet), strconv.Itoa(len(a.PredictionSet))
			}
			if a.InDistribution != nil {
				row[7] = strconv.FormatBool(*a.InDistribution)
			}
			for _, p := range a.Probabilities {
				row = append(row, number(p))
			}
		}
		if err := rows.Write(row); err != nil {
			return errors.Wrap(err, "pollen: csv")
		}
	}
	rows.Flush()
	return errors.Wrap(rows.Error(), "pollen: csv")
}

// joined returns names as a CSV record with semicolons.
func joined(names []string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	w.Comma = ';'
	if len(names) > 0 && w.Write(names) == nil {
		w.Flush() // a strings.Builder returns no errors
	}
	return strings.TrimSuffix(text.String(), "\n")
}
