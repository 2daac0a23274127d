package progress

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "",
		"0.95 ± 0.01\tcat\n":          "0.95 ± 0.01\tcat\n",
		"\x1b[2J\x1b[31mcat":          `\u001b[2J\u001b[31mcat`,
		"\x1b]0;title\a":              `\u001b]0;title\u0007`,
		"a\rb\x7f\u009bc":             `a\u000db\u007f\u009bc`,
		"\u202egnp.tac":               `\u202egnp.tac`,
		"\x1bnot UTF-8: \xff, 日本\xe6": "\\u001bnot UTF-8: \xff, 日本\xe6",
		"\x1b\ufffd":                  "\\u001b\ufffd",
	} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) = %q, want %q", text, got, want)
		}
	}
}

// Results are printable, and JSON among them keeps its meaning.
func TestResultsArePrintable(t *testing.T) {
	var to bytes.Buffer
	names := []string{"\x1b[2Jcat", "\u009bdog"}
	if err := json.NewEncoder(&Results{To: &to}).Encode(names); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(to.Bytes(), &got); err != nil || len(got) != 2 || got[0] != names[0] || got[1] != names[1] {
		t.Errorf("%q is %q (%v), want %q", to.String(), got, err, names)
	}
	if text := to.String(); printable(text) != text {
		t.Errorf("%q has control characters", text)
	}
}
