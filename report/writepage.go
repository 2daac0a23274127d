package report

import (
	"bytes"
	"path/filepath"

	"github.com/pkg/errors"
)

// PageFile is the name of the page that WritePage writes.
const PageFile = "report.html"

// WritePage writes a report of runs into dir, which must exist: report.html with the tables of
// scores, every figure that applies and then the given sections, and each figure as a PNG file. It
// replaces existing files. It returns an error if subjects have no distinct names or invalid
// images, or if there is nothing to show.
//
// Names may be in any script. The page, whose figures are SVG, shows them in the fonts of its
// reader. PNG files have a font for European scripts: they show other letters as question marks, or
// the name by number, which the page explains. Figures with such names are also written as SVG
// files.
func WritePage(dir, title, subtitle string, subjects []Subject, sections ...Section) error {
	page, figures, err := newPage(title, subtitle, subjects, sections)
	if err != nil {
		return err
	}
	for file, figure := range figures {
		if err := figure.Save(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return page.save(filepath.Join(dir, PageFile))
}

// newPage returns the page, and its figures by file name.
func newPage(title, subtitle string, subjects []Subject, sections []Section) (*page, map[string]*Figure, error) {
	if err := checkSubjects("WritePage", subjects); err != nil {
		return nil, nil, err
	}
	subjects = visibleNames(subjects)
	page := &page{Title: title, Subtitle: subtitle}
	scores, err := scoreSections(subjects)
	if err != nil {
		return nil, nil, err
	}
	page.Sections = append(page.Sections, scores...)
	files, drawn := map[string]*Figure{}, 0
	numbered, names, changed := numberedNames(subjects)
	for _, row := range figureRows() {
		if !row.Applies(subjects) {
			continue
		}
		figure, err := row.Draw(subjects)
		if err == nil {
			drawn++
			files[row.File+".png"] = figure
			if changed {
				err = addNumbered(files, row, figure, numbered)
			}
		}
		if err != nil {
			return nil, nil, errors.Wrapf(err, "report: figure %s", row.File)
		}
		page.Sections = append(page.Sections, Section{
			Title: row.Title, Figures: []PageFigure{{figure, row.captionFor(subjects)}},
		})
	}
	page.Sections = append(page.Sections, sections...)
	if len(files) > drawn { // a figure shows such a name
		section, err := namesSection(names)
		if err != nil {
			return nil, nil, err
		}
		page.Sections = append(page.Sections, section)
	}
	return page, files, nil
}

// addNumbered replaces the PNG file of a figure by one with numbers for names, and adds the figure
// itself as an SVG file, if they differ.
func addNumbered(files map[string]*Figure, row figureRow, figure *Figure, numbered []Subject) error {
	other, err := row.Draw(numbered)
	if err != nil {
		return err
	}
	want, err := figure.SVG()
	if err != nil {
		return err
	}
	got, err := other.SVG()
	if err == nil && !bytes.Equal(got, want) {
		files[row.File+".png"], files[row.File+".svg"] = other, figure
	}
	return err
}

// namesSection explains the numbers in PNG files.
func namesSection(names []numberedName) (Section, error) {
	section := Section{Title: "Names in other scripts", Text: []string{
		"The PNG files of figures show some names by number or with question marks, since their font lacks letters of them. " +
			"The SVG files next to them show the names.",
	}}
	if len(names) == 0 { // only images have other names: they are numbered in their order
		return section, nil
	}
	section.Table = NewTable("in PNG files", Column{Title: "name"})
	for _, n := range names {
		if err := section.Table.Add(n.number, n.name); err != nil {
			return section, err
		}
	}
	return section, nil
}
