package report

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// pairsShown is the number of pairs of classes in the figure.
const pairsShown = 10

// barGap is half the gap between the bars of one pair.
const barGap vg.Length = 0.4

// raised returns the offset of text above gonum's YCenter that centres digits in a bar. YCenter
// centres the ascent of 0.905 font sizes, but digits are 0.716 font sizes high.
func raised(size vg.Length) vg.Length { return barGap + (0.905-0.716)/2*size }

var confusionsRow = figureRow{
	File: "confusions", Title: "Most frequent confusions",
	Caption: "The classes of {in} that are most often classified as another class: number of " +
		"images, by run.",
	Applies: func(subjects []Subject) bool {
		return all(subjects, Subject.labelledEnough) && sameData(subjects) && sameClasses(subjects) &&
			len(topConfusions(subjects, 1)) > 0
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		pairs := topConfusions(subjects, pairsShown)
		highest := 0
		key := make(legend, len(subjects))
		for i, s := range subjects {
			key[i] = legendEntry{s.Name, []plot.Thumbnailer{bar(methodColor(i))}}
		}
		style := textStyle(tickSize, ink, text.XRight, text.YCenter)
		names := make([]string, len(pairs))
		left := vg.Length(0)
		for j, pair := range pairs {
			of := namesIn(subjects)
			names[j] = shortened(of.className(pair.label), style, 3*vg.Centimeter) + " as " +
				shortened(of.className(pair.answer), style, 3*vg.Centimeter)
			left = max(left, style.Width(names[j])+6)
			for _, count := range pair.counts {
				highest = max(highest, count)
			}
		}
		thickness := max(5, 10-vg.Length(len(subjects)))
		step := thickness*vg.Length(len(subjects)) + 8
		f := &Figure{width: figureWidth, height: step*vg.Length(len(pairs)) + 2*marginY + key.height(figureWidth)}
		f.draw = func(c draw.Canvas) {
			c = key.draw(c)
			scale := (c.Size().X - left - 30) / vg.Length(highest)
			number := textStyle(min(tickSize, thickness+1), ink, text.XLeft, text.YCenter)
			for j, pair := range pairs {
				top := c.Max.Y - vg.Length(j)*step - 4
				c.FillText(style, vg.Point{X: c.Min.X + left - 6, Y: top - (step-8)/2 + raised(tickSize)}, names[j])
				for i, count := range pair.counts {
					if count == 0 {
						continue
					}
					y := top - vg.Length(i)*thickness
					end := vg.Point{X: c.Min.X + left + scale*vg.Length(count), Y: y}
					c.SetColor(methodColor(i))
					c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X + left, Y: y - thickness + 2*barGap}, Max: end}.Path())
					c.FillText(number, vg.Point{X: end.X + 3, Y: y - thickness/2 + raised(number.Font.Size)}, fmt.Sprint(count))
				}
			}
		}
		return f, nil
	},
}
