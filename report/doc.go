// Package report draws the figures, tables and pages that show runs.
//
// Nouns. A Subject is a run as figures see it: its name, its assessment, the images it was shown,
// traces. A FigureRow is one row of the table of figures: what it shows, of which subjects it can
// be drawn, and how. WritePage writes every figure and every table of scores that applies to some
// runs into a folder. A Figure is a drawing of fixed size, as PNG or SVG; Curves and Plane draw
// other quantities. A Table is printed as plain text or Markdown. A Page gathers sections of text,
// tables and figures into one self-contained HTML file, readable in light and dark.
//
// Policy: what is drawn is what was measured. NaN, infinities and lengths that do not match are
// errors, never gaps or clipped lines; a figure whose input is missing is left out as a whole. The
// same input gives the same bytes. A run keeps its colour, by its position, in all figures; the
// colours, by Okabe and Ito (2008), are distinct for any colour vision, and line dashes repeat
// them. Files are replaced as a whole or not at all.
package report
