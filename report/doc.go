// Package report makes figures, tables and HTML pages that compare runs.
//
// WritePage writes a page, a self-contained HTML file for light and dark screens, with every table
// and figure that applies to some Subjects. A Subject describes a run: its name, assessment, images
// and traces. Curves and Plane draw other quantities. A Figure can be saved as PNG or SVG, a Table
// as plain text or Markdown.
//
// NaN, infinities and lengths that do not match are errors, never gaps or clipped lines. A figure
// whose input is missing is omitted. The same input gives the same bytes. A run has the same colour
// in all figures, determined by its position. The colours, by Okabe and Ito (2008), are distinct
// for all kinds of colour vision, and line dashes distinguish them as well. Files are replaced
// atomically.
package report
