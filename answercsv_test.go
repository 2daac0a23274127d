package pollen

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// An empty prediction set, no prediction set and an image that cannot be read are told apart, and
// names with separators can be read back.
func TestAnswersToProgramsAreUnambiguous(t *testing.T) {
	classes := []string{"a;b", "花\"", "none"}
	answer := func(file string, set []string) Answer {
		return Answer{File: file, Class: "none", Confidence: 0.5, Probabilities: []float64{0.25, 0.25, 0.5}, PredictionSet: set}
	}
	answers := []Answer{
		answer("all", classes), answer("empty", []string{}), answer("absent", nil), {File: "cut.png", Error: "PNG: unexpected EOF"},
	}
	var text strings.Builder
	if err := WriteCSV(&text, answers, classes); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	set, size, failure := slices.Index(rows[0], "prediction_set"), slices.Index(rows[0], "set_size"), slices.Index(rows[0], "error")
	for i, want := range []struct{ size, failure string }{{"3", ""}, {"0", ""}, {"", ""}, {"", "PNG: unexpected EOF"}} {
		row := rows[i+1]
		if row[0] != answers[i].File || row[size] != want.size || row[failure] != want.failure || (row[1] == "") != (want.failure != "") {
			t.Errorf("row %q, want size %q and error %q", row, want.size, want.failure)
		}
	}
	names := csv.NewReader(strings.NewReader(rows[1][set]))
	names.Comma = ';'
	if got, err := names.Read(); err != nil || !slices.Equal(got, classes) {
		t.Errorf("prediction set %q is %q (%v), want %q", rows[1][set], got, err, classes)
	}
	for i, want := range []string{
		`"predictionSet":["a;b",`, `"predictionSet":[],`, `"file":"absent","class":"none"`, `{"file":"cut.png","error":"PNG: unexpected EOF"}`,
	} {
		got, err := json.Marshal(answers[i])
		if err != nil || !strings.Contains(string(got), want) || strings.Contains(string(got), "predictionSet") != (answers[i].PredictionSet != nil) {
			t.Errorf("JSON %s (%v), want %s", got, err, want)
		}
	}
	if got, want := answers[3].String(), "cut.png: PNG: unexpected EOF"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
