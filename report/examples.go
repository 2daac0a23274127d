package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pollen-ml/pollen/evaluate"
)

// examplesShown is the number of images of each data set in the figure of examples.
const examplesShown = 5

var examplesRow = figureRow{
	File: "examples", Title: "Examples",
	Caption: "Images of each data set, with the class above them and the prediction of each run below.",
	Applies: func(subjects []Subject) bool { return sameData(subjects) && shownIn(subjects) != nil },
	Draw: func(subjects []Subject) (*Figure, error) {
		images := shownIn(subjects)
		var tiles []tile
		for _, i := range exampleNumbers(subjects[0].In) {
			tiles = append(tiles, tileOf(subjects, Subject.in, images, i))
		}
		if images = shownOut(subjects); images != nil && sameOut(subjects) && subjects[0].Out != nil {
			for _, i := range exampleNumbers(subjects[0].Out) {
				tiles = append(tiles, tileOf(subjects, Subject.out, images, i))
			}
		}
		return imageGrid(namesOf(subjects), tiles, examplesShown)
	},
}

var mistakesRow = figureRow{
	File: "mistakes", Title: "Most confident mistakes",
	Caption: "The images of {in} that a run misclassifies with the highest confidence. Each kind of mistake " +
		"is shown at most twice, unless there are too few others.",
	Applies: func(subjects []Subject) bool {
		return sameData(subjects) && shownIn(subjects) != nil && all(subjects, Subject.labelled) &&
			len(mistakes(subjects)) > 0
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		var tiles []tile
		for _, i := range mistakes(subjects) {
			t := tileOf(subjects, Subject.in, shownIn(subjects), i)
			t.Group = ""
			tiles = append(tiles, t)
		}
		return imageGrid(namesOf(subjects), tiles, examplesShown)
	},
}

// maxSameMistake is the number of images of the same mistake that are shown if there are others.
// Data often have many images of one object.
const maxSameMistake = 2

// mistakes returns the indices of at most 2 examplesShown images that a subject misclassifies with
// the highest confidence, in descending order.
func mistakes(subjects []Subject) []int {
	type mistake struct {
		number, label, guess int
		confidence           float64
	}
	surest := map[int]mistake{}
	for _, s := range subjects {
		for i, label := range s.In.Labels {
			class, confidence := s.In.Guess(i)
			if class != int(label) && confidence > surest[i].confidence {
				surest[i] = mistake{i, int(label), class, confidence}
			}
		}
	}
	bySureness := func(a, b mistake) int {
		return cmp.Or(cmp.Compare(b.confidence, a.confidence), cmp.Compare(a.number, b.number))
	}
	var different, others []mistake
	seen := map[[2]int]int{}
	for _, m := range slices.SortedFunc(maps.Values(surest), bySureness) {
		if pair := [2]int{m.label, m.guess}; seen[pair] < maxSameMistake {
			seen[pair]++
			different = append(different, m)
		} else {
			others = append(others, m)
		}
	}
	kept := slices.Concat(different, others)
	kept = kept[:min(len(kept), 2*examplesShown)]
	slices.SortFunc(kept, bySureness)
	numbers := make([]int, len(kept))
	for i, m := range kept {
		numbers[i] = m.number
	}
	return numbers
}

// shownIn returns the images of the first subject that has any to draw, or nil.
func shownIn(subjects []Subject) *Images {
	for _, s := range subjects {
		if s.InImages.drawn() {
			return s.InImages
		}
	}
	return nil
}

// namesIn returns the images of the first subject with class names, or nil.
func namesIn(subjects []Subject) *Images {
	for _, s := range subjects {
		if s.InImages != nil && len(s.InImages.ClassNames) > 0 {
			return s.InImages
		}
	}
	return nil
}

// shownOut is shownIn for out-of-distribution images.
func shownOut(subjects []Subject) *Images {
	for _, s := range subjects {
		if s.OutImages.drawn() {
			return s.OutImages
		}
	}
	return nil
}

// exampleNumbers returns the indices of examples: the first image of each of the first classes, in
// the order of the data, then others. Without labels, they are evenly spaced.
func exampleNumbers(p *evaluate.Predictions) []int {
	count := min(examplesShown, p.Len())
	var numbers, others []int
	if p.Labels == nil {
		for i := range count {
			numbers = append(numbers, i*p.Len()/count)
		}
		return numbers
	}
	seen := map[int32]bool{}
	for i := 0; i < p.Len() && len(numbers) < count; i++ {
		if seen[p.Labels[i]] {
			others = append(others, i)
			continue
		}
		seen[p.Labels[i]] = true
		numbers = append(numbers, i)
	}
	return append(numbers, others[:count-len(numbers)]...)
}

// imageNumber is the word before the number of an image without a name, from 1.
const imageNumber = "number"

// tileOf returns the tile of image i of the given predictions, with the guesses of all subjects.
func tileOf(subjects []Subject, of func(Subject) *evaluate.Predictions, images *Images, i int) tile {
	p := of(subjects[0])
	t := tile{Group: p.Name, Title: fmt.Sprintf(imageNumber+" %d", i+1), Image: images.render(i)}
	if i < len(images.Names) {
		t.Title = images.Names[i]
	}
	if p.Labels != nil {
		t.Title = images.className(int(p.Labels[i]))
	}
	names := namesIn(subjects)
	for _, s := range subjects {
		class, confidence := of(s).Guess(i)
		t.Guesses = append(t.Guesses, guess{names.className(class), confidence})
	}
	return t
}
