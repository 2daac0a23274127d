package main

import "github.com/pollen-ml/pollen/report"

// predictor gives the probability of class 1 at a place.
type predictor struct {
	name string
	at   func(x, y float64) float64
}

// places are where predictions are printed, from amid the data to far away.
var places = [][2]float64{{0, 0}, {1, 0.5}, {-1, 1}, {-2, 4}, {-4, 6}, {4, -4}}

// draw saves a figure of the data and the lines where predictors have the probabilities 0.1, 0.3,
// ..., 0.9.
func draw(path string, shown ...predictor) error {
	var levels []report.Levels
	for _, p := range shown {
		l := report.Levels{Name: p.name, At: []float64{0.1, 0.3, 0.5, 0.7, 0.9}}
		for i := range 61 {
			l.X, l.Y = append(l.X, -6+0.2*float64(i)), append(l.Y, -6+0.2*float64(i))
		}
		for _, y := range l.Y {
			for _, x := range l.X {
				l.Values = append(l.Values, p.at(x, y))
			}
		}
		levels = append(levels, l)
	}
	classes := []report.Track{{Method: "class 0"}, {Method: "class 1"}}
	features, labels := observations()
	for i, label := range labels {
		class := &classes[int(label)]
		class.X, class.Y = append(class.X, features[3*i+1]), append(class.Y, features[3*i+2])
	}
	figure, err := report.Plane("x", "y", levels, classes)
	if err != nil {
		return err
	}
	return figure.Save(path)
}
