package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/pkg/errors"
)

// Page is the report of a run: one HTML file that needs no other, for light and dark screens and
// for paper.
type Page struct {
	Title    string
	Subtitle string // such as the date, the device and the seed
	Sections []Section
}

// Section is a part of a page. Every field but Title may be left empty; they are shown in the order
// they have here.
type Section struct {
	Title   string
	Text    []string // paragraphs of plain text
	Table   *Table
	Figures []PageFigure
	Notes   []string // explanations, folded away until they are asked for
	Code    string   // preformatted text, such as a configuration
}

// PageFigure is a figure with the caption below it, which also serves those who cannot see the
// figure.
type PageFigure struct {
	Figure  *Figure
	Caption string
}

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"svg": func(f *Figure) (template.URL, error) {
		content, err := f.SVG()
		return template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(content)), err
	},
	"titles": func(t *Table) []string { return t.titles() },
	"rows":   func(t *Table) [][]string { return t.rows },
}).Parse(pageSource))

// WriteHTML writes the page, with its figures embedded as SVG. A page or section without a title,
// an empty table and a missing figure are errors.
func (p *Page) WriteHTML(w io.Writer) error {
	if p.Title == "" || len(p.Sections) == 0 {
		return errors.Errorf("report: Page: got title %q and %d sections, want a title and at least 1 section", p.Title, len(p.Sections))
	}
	for i, s := range p.Sections {
		if s.Title == "" {
			return errors.Errorf("report: Page: section %d has no title", i)
		}
		if s.Table != nil {
			if err := s.Table.check(); err != nil {
				return errors.Wrapf(err, "report: Page: section %q", s.Title)
			}
		}
		for k, f := range s.Figures {
			if f.Figure == nil {
				return errors.Errorf("report: Page: section %q: figure %d is nil", s.Title, k)
			}
		}
	}
	return errors.Wrap(pageTemplate.Execute(w, p), "report: Page")
}

// Save writes the page to a file, which is replaced as a whole or not at all.
func (p *Page) Save(path string) error {
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		return err
	}
	return save(path, b.Bytes())
}
