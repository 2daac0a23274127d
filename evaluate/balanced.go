package evaluate

import "slices"

// balancedScore is the mean of the recalls of the classes that occur, 1/N_k sum_{n: label_n = k}
// [guess_n = k] (Brodersen, Ong, Stephan and Buhmann 2010, there for two classes). It equals the
// accuracy if all classes are equally frequent.
var balancedScore = Score{
	Name: "balancedAccuracy", Title: "balanced accuracy", Format: "%.4f", Needs: NeedsLabels,
	Meaning: "The mean recall over the classes that occur (Brodersen et al. 2010). The recall of a class is " +
		"the fraction of its examples that are classified correctly. Higher is better.",
	Of: func(c Case) (float64, error) {
		found, err := recalls(c.In)
		if err != nil {
			return 0, err
		}
		return mean(found), nil
	},
	Curve: &Curve{X: "fraction of the classes, lowest recall first", Y: "recall", Of: recallCurve},
}

// recalls returns the recalls of the classes that occur, in the order of the classes.
func recalls(p *Predictions) ([]float64, error) {
	correct, err := p.Correct()
	if err != nil {
		return nil, err
	}
	examples, right := make([]int, p.Classes), make([]int, p.Classes)
	for n, label := range p.Labels {
		examples[label]++
		if correct[n] {
			right[label]++
		}
	}
	var found []float64
	for k, count := range examples {
		if count > 0 {
			found = append(found, float64(right[k])/float64(count))
		}
	}
	return found, nil
}

// recallCurve has a point for each class that occurs: its recall y, and the fraction x of classes
// whose recall is at most y. The mean of y is the score.
func recallCurve(c Case) (x, y []float64, err error) {
	if y, err = recalls(c.In); err != nil {
		return nil, nil, err
	}
	slices.Sort(y)
	x = make([]float64, len(y))
	for i := range x {
		x[i] = float64(i+1) / float64(len(y))
	}
	return x, y, nil
}
