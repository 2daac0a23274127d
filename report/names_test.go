package report

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/text"
)

func TestVisible(t *testing.T) {
	for name, want := range map[string]string{
		"rose":                "rose",
		"花 Größe العربية 👩‍🌾": "花 Größe العربية 👩‍🌾",
		"a\x01b\x1b[2J\n\tc":  `a\x01b\x1b[2J\n\tc`,
		"Gr\xf6\xdfe \ufffd":  `Gr\xf6\xdfe ` + "\ufffd",
		"rose\u202egnp.x":     `rose\u202egnp.x`,
		"\u2028\ufffe\u0085x": `\u2028\ufffe\u0085x`,
	} {
		if got := visible(name); got != want || visible(got) != got {
			t.Errorf("visible(%q) = %q, want %q", name, got, want)
		}
	}
}

// The columns of a table are aligned in a terminal, which gives a Chinese letter two cells.
func TestTableOfWideLetters(t *testing.T) {
	table := NewTable("class", Column{"n", "%.0f"})
	for _, name := range []string{"rose", "花", "العربية", "e\u0301", "🌸", "a\nb"} {
		if err := table.Add(name, 1.0); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	if err := table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := "class      n\n------------\nrose       1\n花         1\nالعربية    1\ne\u0301          1\n🌸         1\n" + `a\nb       1` + "\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// Letters that the font lacks have their own width, by which texts are placed and shortened.
func TestWidthOfMissingLetters(t *testing.T) {
	style := textStyle(10, ink, text.XLeft, text.YBottom)
	for line, want := range map[string]float64{"花": 10, "花木": 20, "🌸": 10, "👩‍🌾": 10, "العربية": 35} {
		if got := style.Width(line).Points(); got != want {
			t.Errorf("width of %s is %v, want %v", line, got, want)
		}
		if writable(line) {
			t.Errorf("%s is writable", line)
		}
	}
	for _, line := range []string{"Größe", "Ελλάδα", "роза", "a<b>&\"", ""} {
		if !writable(line) {
			t.Errorf("%s is not writable", line)
		}
	}
	if got := shortened("花木花木", style, 31); got != "花木…" {
		t.Errorf("shortened to %s", got)
	}
}

// subjectsIn returns subjects whose classes, run and data have the given names.
func subjectsIn(t *testing.T, run, data string, classes ...string) []Subject {
	t.Helper()
	subjects := whole.subjects(t)
	for i := range subjects {
		images := *subjects[i].InImages
		for k := range images.ClassNames {
			images.ClassNames = slices.Clone(images.ClassNames)
			images.ClassNames[k] = classes[k%len(classes)] + strings.Repeat("'", k/len(classes))
		}
		subjects[i].InImages = &images
	}
	subjects[0].Name = run
	return renamed(subjects, func(name string) string {
		if name == "roses" {
			return data
		}
		return name
	}, func(_ int, name string) string { return name }, func(_ int, name string) string { return name }, func(_ int, name string) string { return name })
}

// A page explains no names that its figures do not show, such as the names of images with a class.
func TestNamesNotShown(t *testing.T) {
	subjects := subjectsIn(t, "run", "data", "rose", "lily")
	for _, s := range subjects {
		s.InImages.Names = slices.Repeat([]string{"図"}, s.Assessment.In.Len())
	}
	page, files, err := newPage("Roses", "", subjects, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := page.Sections[len(page.Sections)-1]; last.Title == "Names in other scripts" {
		t.Errorf("%d figures, and the section %+v", len(files), last)
	}
}

// A page shows names in any script. PNG files, whose font lacks letters, have numbers that the page
// explains, and the SVG files next to them have the names.
func TestNamesInAnyScript(t *testing.T) {
	dir := t.TempDir()
	if err := WritePage(dir, "Roses", "", subjectsIn(t, "行", "データ", "花", "rose", "العربية")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		">Names in other scripts</h2>", `<th scope="row">class 0</th><td>花</td>`, `<th scope="row">class 2</th><td>العربية</td>`,
		`<th scope="row">run 1</th><td>行</td>`, `<th scope="row">data 1</th><td>データ</td>`, "confidence on データ",
	} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.Contains(string(page), `<td>rose</td>`) {
		t.Error("rose has a number")
	}
	svg, err := os.ReadFile(filepath.Join(dir, "confusion.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if texts := textsOf(t, svg); !slices.Contains(texts, "花") || !slices.Contains(texts, "العربية") || !slices.Contains(texts, "行") {
		t.Errorf("confusion.svg has the texts %q", texts)
	}
	numbered, names, changed := numberedNames(subjectsIn(t, "行", "データ", "花", "rose", "العربية"))
	figure, err := confusionRow.Draw(numbered)
	if err != nil || !changed || len(names) < 4 {
		t.Fatalf("numbered: %v, %v, %v", names, changed, err)
	}
	if svg, err = figure.SVG(); err != nil {
		t.Fatal(err)
	}
	for _, text := range textsOf(t, svg) {
		if !writable(text) {
			t.Errorf("the PNG file has the text %q, which its font lacks", text)
		}
	}
	want, err := figure.PNG()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "confusion.png")); err != nil || !slices.Equal(got, want) {
		t.Errorf("confusion.png is another figure than that of numbers (%v)", err)
	}
}

// Markup and control characters in names are shown, and figures remain well-formed.
func TestHostileNames(t *testing.T) {
	dir := t.TempDir()
	if err := WritePage(dir, "Roses", "", subjectsIn(t, "<run>\x1b", "d\x00", "<script>alert(1)</script>", "a\x01\nb", "\xff\u202e&amp;")); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"&lt;script&gt;alert(1)&lt;/script&gt;", `a\x01\nb`, `\xff\u202e&amp;amp;`, `&lt;run&gt;\x1b`, `d\x00`} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.ContainsAny(string(page), "\x00\x01\x1b\u202e") || strings.Contains(string(page), "<script") {
		t.Error("the page has control characters or markup of names")
	}
	figure, err := confusionRow.Draw(visibleNames(subjectsIn(t, "<run>\x1b", "d\x00", "<script>alert(1)</script>", "a\x01\nb", "\xff\u202e&amp;")))
	if err != nil {
		t.Fatal(err)
	}
	svg, err := figure.SVG()
	if err != nil {
		t.Fatal(err)
	}
	if texts := textsOf(t, svg); !slices.Contains(texts, `<run>\x1b`) {
		t.Errorf("the figure has the texts %q", texts)
	}
}

// textsOf returns the texts of an SVG file, which must be well-formed.
func textsOf(t *testing.T, svg []byte) (texts []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	inside := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatalf("SVG: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inside = token.Name.Local == "text"
		case xml.CharData:
			if inside {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			inside = false
		}
	}
}

// Of a name with a few letters that the font lacks, the others are kept, unless another name would
// look the same.
func TestNamesKeepTheirLetters(t *testing.T) {
	for _, c := range []struct {
		name, want string
		names      []string
	}{
		{"Gänse 蜂", "Gänse ?", []string{"Gänse 蜂", "rose"}},
		{"Gänse 蜂", "", []string{"Gänse 蜂", "Gänse 花"}},
		{"Gänse 蜂", "", []string{"Gänse 蜂", "Gänse ?"}},
		{"花", "", []string{"花"}},
		{"花 7", "? 7", []string{"花 7", "花 8"}},
	} {
		l := looks{}
		for _, name := range c.names {
			l.add(name)
		}
		if got := l.of(c.name); got != c.want {
			t.Errorf("of %q, %s is %q, want %q", c.names, c.name, got, c.want)
		}
	}
	numbered, names, changed := numberedNames(subjectsIn(t, "run 行", "データ", "Gänse 蜂", "rose", "花"))
	if got := numbered[0].InImages.ClassNames[:3]; !changed || !slices.Equal(got, []string{"Gänse ?", "rose", "class 2"}) || numbered[0].Name != "run ?" {
		t.Errorf("the classes are %q of %q", got, numbered[0].Name)
	}
	for _, want := range []numberedName{{"Gänse ?", "Gänse 蜂"}, {"class 2", "花"}, {"run ?", "run 行"}} {
		if !slices.Contains(names, want) {
			t.Errorf("%v lacks %v", names, want)
		}
	}
}
