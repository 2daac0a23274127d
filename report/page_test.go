package report

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func scoresTable(t *testing.T) *Table {
	t.Helper()
	table := NewTable("method", Column{"accuracy, %", "%.2f"}, Column{"NLL", "%.4f"}, Column{"p|q", "%.0f"})
	for _, row := range []struct {
		name  string
		cells []any
	}{{"SGD", []any{99.13, 0.0313, 1.0}}, {"SGLD, T = 1", []any{"99.04 ± 0.05", 0.0351, "-"}}, {"<b>", []any{0.5, -1.0, 12345.0}}} {
		if err := table.Add(row.name, row.cells...); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

func TestTableText(t *testing.T) {
	var b strings.Builder
	if err := scoresTable(t).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `method        accuracy, %      NLL    p|q
-----------------------------------------
SGD                 99.13   0.0313      1
SGLD, T = 1  99.04 ± 0.05   0.0351      -
<b>                  0.50  -1.0000  12345
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestTableMarkdown(t *testing.T) {
	var b strings.Builder
	if err := scoresTable(t).WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	want := `| method      |  accuracy, % |     NLL |  p\|q |
| ----------- | -----------: | ------: | ----: |
| SGD         |        99.13 |  0.0313 |     1 |
| SGLD, T = 1 | 99.04 ± 0.05 |  0.0351 |     - |
| <b>         |         0.50 | -1.0000 | 12345 |
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTableRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		format  string
		cells   []any
		message string
	}{
		{"none", "%.2f", nil, "must have 1 cells, got 0"},
		{"many", "%.2f", []any{1.0, 2.0}, "must have 1 cells, got 2"},
		{"NaN", "%.2f", []any{math.NaN()}, "got NaN"},
		{"infinite", "%.2f", []any{math.Inf(1)}, "got +Inf"},
		{"integer", "%.2f", []any{1}, "got int"},
		{"format", "%d", []any{1.0}, "such as %.4f, got \"%d\""},
		{"no format", "", []any{1.0}, "such as %.4f, got \"\""},
	} {
		table := NewTable("method", Column{"NLL", c.format})
		refused(t, c.name, table.Add("SGD", c.cells...), c.message)
		refused(t, c.name+", then empty", table.WriteText(&strings.Builder{}), "1 row, got 1 and 0")
	}
	refused(t, "no columns", NewTable("method").WriteMarkdown(&strings.Builder{}), "1 row, got 0 and 0")
	refused(t, "writer", scoresTable(t).WriteText(brokenWriter{}), "disk full")
	refused(t, "writer", scoresTable(t).WriteMarkdown(brokenWriter{}), "disk full")
}

func smallPage(t *testing.T) page {
	t.Helper()
	figures := smallFigures(t)
	return page{
		Title: "Digits & letters", Subtitle: "seed 1",
		Sections: []Section{
			{Title: "Scores", Text: []string{"First.", "<script>alert(1)</script>"}, Table: scoresTable(t)},
			{Title: "Figures", Figures: []PageFigure{{figures["curves"], `loss "nats"`}, {figures["imagegrid"], ""}}},
			{Title: "Configuration", Code: "a: <1>\n  b: 2\n"},
		},
	}
}

func TestPage(t *testing.T) {
	page := smallPage(t)
	var b, again bytes.Buffer
	if err := page.writeHTML(&b); err != nil {
		t.Fatal(err)
	}
	if err := page.writeHTML(&again); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	if html != again.String() {
		t.Error("the page differs from run to run")
	}
	for _, want := range []string{
		"<title>Digits &amp; letters</title>", `<p class="subtitle">seed 1</p>`, `<a href="#s2">Configuration</a>`,
		"<p>First.</p>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>",
		`<th scope="col">accuracy, %</th>`, `<tr><th scope="row">SGD</th><td>99.13</td><td>0.0313</td><td>1</td></tr>`,
		`alt="loss &#34;nats&#34;"`, "<figcaption>loss &#34;nats&#34;</figcaption>", "<pre>a: &lt;1&gt;\n  b: 2\n</pre>",
		"prefers-color-scheme: dark",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(html, "<figcaption>"); n != 1 {
		t.Errorf("%d captions, want 1", n)
	}
	if n := strings.Count(html, `src="data:image/svg&#43;xml;base64,`) + strings.Count(html, `src="data:image/svg+xml;base64,`); n != 2 {
		t.Errorf("%d embedded figures, want 2", n)
	}
	for _, outside := range []string{"http:", "https:", "//", "url(", "@import", "<script", "<link", "ZgotmplZ"} {
		// Base64 may hold two slashes.
		if strings.Contains(regexp.MustCompile(`base64,[^"]*"`).ReplaceAllString(html, ""), outside) {
			t.Errorf("the page contains %q, want nothing from outside", outside)
		}
	}
}

func TestPageSave(t *testing.T) {
	page := smallPage(t)
	path := filepath.Join(t.TempDir(), "report.html")
	if err := page.save(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(content, []byte("<!DOCTYPE html>")) || !bytes.HasSuffix(content, []byte("</html>\n")) {
		t.Errorf("the file is not a whole page: %.40q ...", content)
	}
}

func TestPageRefuses(t *testing.T) {
	figure := smallFigures(t)["curves"]
	for _, c := range []struct {
		name    string
		page    page
		message string
	}{
		{"nothing", page{}, "0 sections"},
		{"no title", page{Sections: []Section{{Title: "a"}}}, `title ""`},
		{"no section", page{Title: "a"}, "0 sections"},
		{"no section title", page{Title: "a", Sections: []Section{{Text: []string{"x"}}}}, "section 0 must have a title"},
		{"no figure", page{Title: "a", Sections: []Section{{Title: "b", Figures: []PageFigure{{figure, ""}, {}}}}}, "figure 1 must not be nil"},
		{"empty table", page{Title: "a", Sections: []Section{{Title: "b", Table: NewTable("method")}}}, `section "b": report: Table`},
	} {
		refused(t, c.name, c.page.save(filepath.Join(t.TempDir(), "report.html")), c.message)
	}
}
