package report

import "fmt"

var lossRow = figureRow{
	File: "loss", Title: "Loss",
	Caption: "The training loss by step, averaged over chains.",
	Applies: func(subjects []Subject) bool {
		return !all(subjects, func(s Subject) bool { return len(s.meanLoss()) < 2 })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		var curves []Curve
		var places []int
		lowest := 1.0
		for i, s := range subjects {
			loss := s.meanLoss()
			if len(loss) < 2 {
				continue
			}
			c := Curve{Method: s.Name, Y: loss, X: make([]float64, len(loss))}
			if chains := len(s.Losses); chains > 1 {
				c.Method += fmt.Sprintf(", mean of %d chains", chains)
			}
			for j := range loss {
				c.X[j] = float64((j + 1) * max(s.LossEvery, 1))
				lowest = min(lowest, loss[j])
			}
			curves, places = append(curves, c), append(places, i)
		}
		return curvesOf(Axes{X: "step", Y: "loss, nats per image", LogY: lowest > 0}, curves, places)
	},
}

// meanLoss returns the mean of the chains' losses, up to the length of the shortest.
func (s Subject) meanLoss() []float64 {
	if len(s.Losses) == 0 {
		return nil
	}
	length := len(s.Losses[0])
	for _, chain := range s.Losses {
		length = min(length, len(chain))
	}
	mean := make([]float64, length)
	for _, chain := range s.Losses {
		for j := range mean {
			mean[j] += chain[j] / float64(len(s.Losses))
		}
	}
	return mean
}
