package attributes

import (
	"strings"
	"testing"
)

type rule struct {
	LearningRate float64
	Steps        int
	Kind         string
	Exact        bool
	Tables       map[string]int // is not an attribute
	hidden       int
}

func TestWith(t *testing.T) {
	start := rule{LearningRate: 0.1, Steps: 3, Tables: map[string]int{"a": 1}, hidden: 7}
	for text, want := range map[string]string{
		"0.5,1e3":                   "learning-rate=0.5,steps=1000,kind=,exact=false",
		"0.5, kind = fast":          "learning-rate=0.5,steps=3,kind=fast,exact=false",
		"exact=true":                "learning-rate=0.1,steps=3,kind=,exact=true",
		"steps=1.5":                 "steps: 1.5 is not an integer",
		"x":                         `learning-rate: "x" is not a number`,
		"exact=2":                   `exact: must be true or false, got "2"`,
		"steps=1,steps=2":           "steps is given twice",
		"steps=1,2":                 `no attribute "2"; there are learning-rate=0.1, steps=3, kind=, exact=false`,
		"tables=1":                  `no attribute "tables=1"; there are`,
		"step=1":                    `no attribute "step=1"; did you mean steps? There are`,
		"0.1,1,fast,true,something": `no attribute "something"; there are`,
	} {
		changed, err := With(start, text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", text, err, want)
			}
			continue
		}
		got := changed.(rule)
		if Join(Of(got)) != want || got.Tables["a"] != 1 || got.hidden != 7 {
			t.Errorf("%s: %+v, want %s", text, got, want)
		}
	}
	if start.LearningRate != 0.1 || Of(3) != nil || Of(&start) != nil {
		t.Error("With changed its argument, or values that are not structs have attributes")
	}
}
