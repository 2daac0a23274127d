package report

import (
	"fmt"

	"github.com/pollen-ml/pollen/evaluate"
)

// shown is how many images of each kind the figure of examples has.
const shown = 5

var examplesRow = FigureRow{
	File: "examples", Title: "What they were shown",
	Caption: "Images of {in}, and below them of {out} where there is such, each with its class and " +
		"the guess of each run.",
	Applies: func(subjects []Subject) bool { return sameData(subjects) && shownIn(subjects) != nil },
	Draw: func(subjects []Subject) (*Figure, error) {
		pictures := shownIn(subjects)
		var tiles []Tile
		for _, i := range exampleNumbers(subjects[0].In) {
			tiles = append(tiles, tileOf(subjects, Subject.in, pictures, i))
		}
		if pictures = shownOut(subjects); pictures != nil && sameOut(subjects) && subjects[0].Out != nil {
			for len(tiles)%shown != 0 {
				tiles = append(tiles, Tile{})
			}
			for _, i := range exampleNumbers(subjects[0].Out) {
				tiles = append(tiles, tileOf(subjects, Subject.out, pictures, i))
			}
		}
		return ImageGrid(namesOf(subjects), tiles, shown)
	},
}

func namesOf(subjects []Subject) []string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name
	}
	return names
}

// shownIn are the images of the first subject that has any, nil where none has.
func shownIn(subjects []Subject) *Pictures {
	for _, s := range subjects {
		if s.InImages != nil && s.InImages.Len() > 0 {
			return s.InImages
		}
	}
	return nil
}

// shownOut is shownIn of the other kind.
func shownOut(subjects []Subject) *Pictures {
	for _, s := range subjects {
		if s.OutImages != nil && s.OutImages.Len() > 0 {
			return s.OutImages
		}
	}
	return nil
}

// exampleNumbers are the first images of the first classes, in the order of the data, and then
// others; spread over the data where labels are unknown.
func exampleNumbers(p *evaluate.Predictions) []int {
	count := min(shown, p.Len())
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

// tileOf shows one image of the predictions that are given, with the guesses of all subjects.
func tileOf(subjects []Subject, of func(Subject) *evaluate.Predictions, pictures *Pictures, i int) Tile {
	p := of(subjects[0])
	tile := Tile{Title: fmt.Sprintf("%s, number %d", p.Name, i+1), Image: pictures.picture(i)}
	if p.Labels != nil {
		tile.Title = p.Name + ": " + pictures.className(int(p.Labels[i]))
	}
	for _, s := range subjects {
		class, confidence := of(s).Guess(i)
		tile.Guesses = append(tile.Guesses, Guess{s.className(class), confidence})
	}
	return tile
}
