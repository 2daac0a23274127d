package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/pkg/errors"
)

// page is a report as a self-contained HTML file for light and dark screens and for print.
type page struct {
	Title    string
	Subtitle string // such as the date, the device and the seed
	Sections []Section
}

// Section is a part of a page. All fields except Title may be empty. They are shown in the order of
// the declaration.
type Section struct {
	Title   string
	Text    []string // paragraphs of plain text
	Table   *Table
	Figures []PageFigure
	Notes   []string // explanations, collapsed initially
	Code    string   // preformatted text, such as a configuration
}

// PageFigure is a figure with a caption, which is also the image's alternative text.
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
	"titles":  func(t *Table) []string { return t.titles() },
	"rows":    func(t *Table) [][]string { return t.rows },
	"visible": visible,
}).Parse(pageSource))

// writeHTML writes the page, with its figures embedded as SVG. It returns an error if the page or a
// section has no title, a table is empty, or a figure is missing.
func (p *page) writeHTML(w io.Writer) error {
	if p.Title == "" || len(p.Sections) == 0 {
		return errors.Errorf("report: Page: must have a title and at least 1 section, got title %q and %d sections", p.Title, len(p.Sections))
	}
	for i, s := range p.Sections {
		if s.Title == "" {
			return errors.Errorf("report: Page: section %d must have a title", i)
		}
		if s.Table != nil {
			if err := s.Table.check(); err != nil {
				return errors.Wrapf(err, "report: Page: section %q", s.Title)
			}
		}
		for k, f := range s.Figures {
			if f.Figure == nil {
				return errors.Errorf("report: Page: section %q: figure %d must not be nil", s.Title, k)
			}
		}
	}
	return errors.Wrap(pageTemplate.Execute(w, p), "report: Page")
}

// save writes the page to a file, atomically.
func (p *page) save(path string) error {
	var b bytes.Buffer
	if err := p.writeHTML(&b); err != nil {
		return err
	}
	return save(path, b.Bytes())
}
