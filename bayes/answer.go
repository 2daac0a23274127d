package bayes

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// Answer is a run's prediction for one image.
type Answer struct {
	// File is the image's file, if known.
	File string `json:"file,omitempty"`
	// ID is the image's identifier in the table that it is from, see datasets.Dataset.IDs, if
	// known. Predict and servers set it.
	ID string `json:"id,omitempty"`
	// Error is the reason why there is no prediction for File, whose content could not be read. All
	// other fields are then empty, and absent in JSON. Answers of Predict have none.
	Error string `json:"error,omitempty"`
	// Class is the most probable class, and Index its number.
	Class string `json:"class"`
	Index int    `json:"index"`

	// Confidence is the probability of Class.
	Confidence float64 `json:"confidence"`
	// Entropy is the entropy of the posterior predictive, in nats: the total uncertainty. It is at
	// most ln K, for K equally probable classes.
	Entropy float64 `json:"entropy"`
	// MutualInformation is the mutual information between class and weights, in nats: the part of
	// Entropy that comes from samples that disagree (epistemic uncertainty). The rest is the mean
	// entropy of the samples (aleatoric uncertainty). It is 0 for a single sample, except in a
	// distilled run, whose samples predict Dirichlet distributions.
	MutualInformation float64 `json:"mutualInformation"`
	// Probabilities are those of the classes: the posterior predictive, which is the average over
	// the samples, scaled to fit the calibration images, see evaluate.Calibration.Scaled. They are
	// not scaled without a calibration, and with WithUnscaled.
	Probabilities []float64 `json:"probabilities,omitempty"`

	// PredictionSet is the conformal prediction set, the most probable class first. For images like
	// the calibration images it contains the true class with the probability of WithLevel, on
	// average over images. WithSetRule sets how it is formed, and whether it may be empty. It is
	// nil if the run was not calibrated on enough images for that level.
	PredictionSet []string `json:"predictionSet,omitzero"`
	// MarginalClasses are the classes whose images PredictionSet does not cover with the
	// probability of WithLevel, for a rule with a threshold for each class: they have the threshold
	// of all classes, since the run was calibrated on too few images of them. It is nil for other
	// rules.
	MarginalClasses []string `json:"marginalClasses,omitzero"`
	// Refer reports whether the image is to be referred to a person, because its confidence before
	// scaling is below the threshold at and above which the error rate is certified to be at most
	// WithRisk's. It is true for all images if no threshold can be certified, and nil without
	// WithRisk.
	Refer *bool `json:"refer,omitzero"`
	// InDistribution reports whether the image is like those trained on. WithInDistributionRate
	// sets the fraction of these for which it is true. It is nil if the run has no detector, or was
	// not calibrated on enough images.
	InDistribution *bool `json:"inDistribution,omitzero"`
	// PValue is the conformal p-value from which InDistribution is decided: for images like those
	// trained on it is at most a with a probability of at most a. It is nil if InDistribution is.
	PValue *float64 `json:"pValue,omitzero"`
	// Calibrated reports whether both PredictionSet and InDistribution are given.
	Calibrated bool `json:"calibrated"`
}

// MarshalJSON implements json.Marshaler.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Error != "" {
		return json.Marshal(struct {
			File  string `json:"file,omitempty"`
			Error string `json:"error"`
		}{a.File, a.Error})
	}
	type plain Answer // without this method
	return json.Marshal(plain(a))
}

// String returns the answer in words, as in "rose (0.98) of rose, tulip".
func (a Answer) String() string {
	if a.Error != "" {
		return strings.TrimPrefix(a.File+": "+a.Error, ": ")
	}
	text := fmt.Sprintf("%s (%.2f)", a.Class, a.Confidence)
	if a.File != "" {
		text = a.File + ": " + text
	}
	switch {
	case len(a.PredictionSet) > 0:
		text += " of " + strings.Join(a.PredictionSet, ", ")
	case a.PredictionSet != nil:
		text += "; empty prediction set"
	}
	if a.InDistribution != nil && !*a.InDistribution {
		text += "; out of distribution"
	}
	if a.Refer != nil && *a.Refer {
		text += "; refer to a person"
	}
	return text
}

// SetMembers returns whether PredictionSet contains each of the classes.
func (a Answer) SetMembers(classes []string) []bool {
	inSet := map[string]bool{}
	for _, class := range a.PredictionSet {
		inSet[class] = true
	}
	members := make([]bool, len(classes))
	for i, class := range classes {
		members[i] = inSet[class]
	}
	return members
}

// WriteCSV writes answers as CSV, a row for each, with a column for the probability of each class.
//
// If any answer has an ID, a column id follows the file's.
//
// prediction_set has the classes of the set, joined by semicolons and quoted as in CSV where a name
// has a semicolon or a quote. set_size is their number: 0 for an empty set, and blank if there is
// no prediction set. in_distribution and refer are blank if they are unknown. A row with an error
// has only its file.
func WriteCSV(to io.Writer, answers []Answer, classes []string) error {
	rows := csv.NewWriter(to)
	header := []string{"file", "class", "confidence", "entropy", "mutual_information", "prediction_set", "set_size", "in_distribution", "refer", "error"}
	hasIDs := slices.ContainsFunc(answers, func(a Answer) bool { return a.ID != "" })
	fixed := len(header)
	for _, class := range classes {
		header = append(header, "p("+class+")")
	}
	write := func(row []string, id string) error {
		if hasIDs {
			row = slices.Insert(row, 1, id)
		}
		return errors.Wrap(rows.Write(row), "pollen: csv")
	}
	if err := write(slices.Clone(header), "id"); err != nil {
		return err
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for i, a := range answers {
		row := make([]string, fixed, len(header))
		row[0], row[fixed-1] = a.File, a.Error
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
			if a.Refer != nil {
				row[8] = strconv.FormatBool(*a.Refer)
			}
			for _, p := range a.Probabilities {
				row = append(row, number(p))
			}
		}
		if err := write(row, a.ID); err != nil {
			return err
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
