// Package report draws the figures, tables and pages that show a run.
//
// Nouns. A Figure is a drawing of fixed size, to be had as PNG or SVG: weightDensity, confidenceHistogram, Reliability,
// RiskCoverage, Curves, Plane and imageGrid make one. A Table is printed as plain text or Markdown. A Page gathers sections of
// text, tables and figures into one self-contained HTML file, readable in light and dark.
//
// Policy: what is drawn is what was measured. Empty input, NaN, infinities and lengths that do not match are errors, never
// gaps or clipped lines. The same input gives the same bytes. A method keeps its colour, by its position, in all figures;
// the colours are those of Okabe and Ito (2008), told apart with any colour vision, and line dashes repeat what they say.
// Files are replaced as a whole or not at all.
package report
