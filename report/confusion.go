package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// maxZeros is the largest number of classes for which cells of 0 % are labelled. More labels would
// hide the others.
const maxZeros = 10

// maxClasses is the largest number of classes for which a confusion matrix is drawn.
const maxClasses = 50

var confusionRow = figureRow{
	File: "confusion", Title: "Confusion matrix",
	Caption: "On {in}: rows are true classes, columns predicted classes; a cell has the percentage of " +
		"the true class. The shade grows with its square root.",
	Applies: func(subjects []Subject) bool {
		return all(subjects, Subject.labelledEnough) && sameClasses(subjects) && subjects[0].In.Classes <= maxClasses
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		columns := min(len(subjects), 2)
		if len(subjects) > 4 {
			columns = 3
		}
		rows := (len(subjects) + columns - 1) / columns
		const gap = vg.Length(12)
		width := min((figureWidth-2*marginX+gap)/vg.Length(columns)-gap, 11*vg.Centimeter)
		names := make([]string, subjects[0].In.Classes)
		for k := range names {
			names[k] = namesIn(subjects).className(k)
		}
		m := newMatrixLayout(names, width)
		f := &Figure{
			width:  vg.Length(columns)*(width+gap) - gap + 2*marginX,
			height: vg.Length(rows)*(m.height+gap) - gap + 2*marginY,
		}
		f.draw = func(c draw.Canvas) {
			for i, s := range subjects {
				at := vg.Point{
					X: c.Min.X + vg.Length(i%columns)*(width+gap),
					Y: c.Max.Y - vg.Length(i/columns)*(m.height+gap),
				}
				m.draw(c, at, s, i)
			}
		}
		return f, nil
	},
}

// matrixLayout is the layout of a confusion matrix.
type matrixLayout struct {
	names         []string
	cell          vg.Length // side
	left, above   vg.Length // space for names
	nameStyle     text.Style
	width, height vg.Length
}

// smallestName is the font size, in points, below which names are omitted.
const smallestName = 4.5

func newMatrixLayout(names []string, width vg.Length) matrixLayout {
	m := matrixLayout{names: names, width: width}
	longest := 0.0
	full := textStyle(tickSize, ink, text.XRight, text.YCenter)
	for _, name := range names {
		longest = max(longest, float64(full.Width(name)))
	}
	// Names get the width that they need, but at most a quarter.
	m.left = min(vg.Length(longest)+4, width/4) + 12
	m.cell = (width - m.left) / vg.Length(len(names))
	size := min(tickSize, m.cell*0.9)
	if size < smallestName {
		m.left, size = 14, 0
		m.cell = (width - m.left) / vg.Length(len(names))
	}
	m.nameStyle = textStyle(size, ink, text.XRight, text.YCenter)
	m.above = headingHeight + 16
	if size > 0 {
		m.above = headingHeight + 2 + m.left
		if m.upright() {
			m.above = headingHeight + 16 + size
		}
	}
	m.height = m.above + m.cell*vg.Length(len(names))
	return m
}

// upright reports whether the column names fit next to each other horizontally.
func (m matrixLayout) upright() bool {
	return !slices.ContainsFunc(m.names, func(name string) bool { return m.nameStyle.Width(name) > m.cell-2 })
}

// draw draws the matrix of subject i with its upper left corner at a point.
func (m matrixLayout) draw(c draw.Canvas, at vg.Point, s Subject, i int) {
	title := bold(textStyle(labelSize, mix(methodColor(i), ink, 0.2), text.XLeft, text.YTop))
	c.FillText(title, at, shortened(s.Name, title, m.width))
	corner := vg.Point{X: at.X + m.left, Y: at.Y - m.above}
	side := m.cell * vg.Length(len(m.names))
	axis := textStyle(tickSize, muted, text.XCenter, text.YTop)
	c.FillText(axis, vg.Point{X: corner.X + side/2, Y: at.Y - headingHeight}, "predicted")
	axis.Rotation = math.Pi / 2
	c.FillText(axis, vg.Point{X: at.X, Y: corner.Y - side/2}, "true")
	m.drawNames(c, corner)
	counts := confusions(s)
	percent := textStyle(min(tickSize, m.cell*0.42), ink, text.XCenter, text.YCenter)
	for row := range m.names {
		total := 0
		for _, count := range counts[row] {
			total += count
		}
		for column, count := range counts[row] {
			if count == 0 && (total == 0 || len(m.names) > maxZeros) {
				continue
			}
			share := float64(count) / float64(total)
			cell := vg.Rectangle{
				Min: vg.Point{X: corner.X + vg.Length(column)*m.cell, Y: corner.Y - vg.Length(row+1)*m.cell},
				Max: vg.Point{X: corner.X + vg.Length(column+1)*m.cell, Y: corner.Y - vg.Length(row)*m.cell},
			}
			c.SetColor(mix(white, methodColor(i), math.Sqrt(share)))
			c.Fill(cell.Path())
			if percent.Font.Size < 5.5 {
				continue
			}
			percent.Color = ink
			if share > 0.3 {
				percent.Color = white
			} else if count == 0 {
				percent.Color = muted
			}
			middle := vg.Point{X: (cell.Min.X + cell.Max.X) / 2, Y: (cell.Min.Y + cell.Max.Y) / 2}
			c.FillText(percent, middle, percentText(share))
		}
	}
	c.SetLineStyle(draw.LineStyle{Color: muted, Width: 0.6})
	c.Stroke(vg.Rectangle{Min: vg.Point{X: corner.X, Y: corner.Y - side}, Max: vg.Point{X: corner.X + side, Y: corner.Y}}.Path())
}

// percentText formats a fraction as a percentage of at most three characters.
func percentText(share float64) string {
	if percent := 100 * share; percent > 0 && percent < 9.95 {
		return fmt.Sprintf("%.1f", percent)
	}
	return fmt.Sprintf("%.0f", 100*share)
}

func (m matrixLayout) drawNames(c draw.Canvas, corner vg.Point) {
	if m.nameStyle.Font.Size == 0 {
		return
	}
	for k, name := range m.names {
		name = shortened(name, m.nameStyle, m.left-14)
		middle := (vg.Length(k) + 0.5) * m.cell
		c.FillText(m.nameStyle, vg.Point{X: corner.X - 3, Y: corner.Y - middle}, name)
		style := m.nameStyle
		style.XAlign, style.YAlign = text.XCenter, text.YBottom
		if !m.upright() {
			style.XAlign, style.YAlign, style.Rotation = text.XLeft, text.YCenter, math.Pi/2
		}
		c.FillText(style, vg.Point{X: corner.X + middle, Y: corner.Y + 3}, name)
	}
}

// confusions returns the confusion matrix as counts [label][predicted class].
func confusions(s Subject) [][]int {
	counts := make([][]int, s.In.Classes)
	for k := range counts {
		counts[k] = make([]int, s.In.Classes)
	}
	for n, label := range s.In.Labels {
		answer, _ := s.In.Guess(n)
		counts[label][answer]++
	}
	return counts
}

// confusion is a pair of a true and a predicted class, with each subject's count.
type confusion struct {
	label, answer int
	counts        []int
	total         int
}

// topConfusions returns the pairs that all subjects together confuse most often, and pairs confused
// equally often in the order of their classes. Time and memory are linear in the images.
func topConfusions(subjects []Subject, count int) []confusion {
	var pairs []confusion
	at := map[[2]int]int{} // index in pairs
	for i, s := range subjects {
		for n, label := range s.In.Labels {
			answer, _ := s.In.Guess(n)
			if answer == int(label) {
				continue
			}
			classes := [2]int{int(label), answer}
			j, known := at[classes]
			if !known {
				j = len(pairs)
				at[classes] = j
				pairs = append(pairs, confusion{label: classes[0], answer: answer, counts: make([]int, len(subjects))})
			}
			pairs[j].counts[i]++
			pairs[j].total++
		}
	}
	slices.SortFunc(pairs, func(a, b confusion) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.label, b.label), cmp.Compare(a.answer, b.answer))
	})
	return pairs[:min(count, len(pairs))]
}
