package report

import (
	"path/filepath"

	"github.com/pkg/errors"
)

// WritePage writes a report of runs into dir, which must exist: report.html with the tables of
// scores, every figure that applies and then the given sections, and each figure as a PNG file. It
// replaces existing files. It returns an error if subjects have no distinct names or invalid
// images, or if there is nothing to show.
func WritePage(dir, title, subtitle string, subjects []Subject, sections ...Section) error {
	page, figures, err := newPage(title, subtitle, subjects, sections)
	if err != nil {
		return err
	}
	for file, figure := range figures {
		if err := figure.Save(filepath.Join(dir, file+".png")); err != nil {
			return err
		}
	}
	return page.Save(filepath.Join(dir, "report.html"))
}

// newPage returns the page, and its figures by file name.
func newPage(title, subtitle string, subjects []Subject, sections []Section) (*Page, map[string]*Figure, error) {
	if err := checkSubjects("WritePage", subjects); err != nil {
		return nil, nil, err
	}
	page := &Page{Title: title, Subtitle: subtitle}
	scores, err := scoreSections(subjects)
	if err != nil {
		return nil, nil, err
	}
	page.Sections = append(page.Sections, scores...)
	figures := map[string]*Figure{}
	for _, row := range Figures() {
		if !row.Applies(subjects) {
			continue
		}
		figure, err := row.Draw(subjects)
		if err != nil {
			return nil, nil, errors.Wrapf(err, "report: figure %s", row.File)
		}
		figures[row.File] = figure
		page.Sections = append(page.Sections, Section{
			Title: row.Title, Figures: []PageFigure{{figure, row.CaptionFor(subjects)}},
		})
	}
	page.Sections = append(page.Sections, sections...)
	return page, figures, nil
}
