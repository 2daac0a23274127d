package datasets

import (
	"bytes"
	_ "embed" // for the letters
	"encoding/csv"
	"image"
	"image/png"
	"runtime"
	"strconv"
	"sync"

	"github.com/pkg/errors"
)

// The letters as rendered by glyphs/generate, and the list of their faces.
var (
	//go:embed glyphs/letters.png
	lettersPNG []byte
	//go:embed glyphs/letters.csv
	lettersCSV []byte
)

// glyphs describes letters A to J that this package draws, similar to notMNIST, so that programs
// have letters without a download: white on black, each stretched to fill the image, from typefaces
// of Go modules, with seeded variations of weight, slant and margin. Training and test letters are
// of different designs. The images cycle through the letters A to J.
//
// glyphs/letters.csv lists the faces with their modules and licences. All licences allow the
// distribution of images made with the fonts.
func glyphs() source {
	return source{
		name:       "glyphs",
		what:       "letters A to J drawn from the faces of Go's font modules",
		images:     glyphCounts,
		classNames: letterNames,
		mean:       0.42259254426770704,
		std:        0.458618899863745,
		render:     renderGlyphs,
	}
}

// glyphCounts are the numbers of images by Split.
var glyphCounts = [2]int{Train: 20000, Test: 10000}

// glyphDesign is a set of faces of the same design.
type glyphDesign struct {
	weight int        // relative number of images
	faces  [][]letter // the letters A to J of each face
}

// renderGlyphs draws one split.
func renderGlyphs(split Split) (*Dataset, error) {
	designs, err := readDesigns(split)
	if err != nil {
		return nil, err
	}
	count, classes, size := glyphCounts[split], len(letterNames), knownSide*knownSide
	images, labels := make([]byte, count*size), make([]byte, count)
	order := spread(designs, count/classes)
	draw := func(i int) {
		labels[i] = byte(i % classes)
		design := designs[order[i/classes]]
		variation := newVariation(split, i, len(design.faces))
		variation.draw(design.faces[variation.face][i%classes], images[i*size:(i+1)*size])
	}
	var workers sync.WaitGroup
	for worker := range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := worker; i < count; i += runtime.GOMAXPROCS(0) {
				draw(i)
			}
		})
	}
	workers.Wait()
	dataset := glyphs().dataset(images, labels)
	dataset.Place = "built in"
	dataset.Hashes = map[string]string{
		"letters.png": sha256Hex(lettersPNG),
		"letters.csv": sha256Hex(lettersCSV),
		"images":      sha256Hex(images),
	}
	return dataset, nil
}

// readDesigns returns the designs of one split. It returns an error if the embedded files do not
// match.
func readDesigns(split Split) ([]glyphDesign, error) {
	decoded, err := png.Decode(bytes.NewReader(lettersPNG))
	if err != nil {
		return nil, errors.Wrap(err, "datasets: glyphs: letters.png")
	}
	table := csv.NewReader(bytes.NewReader(lettersCSV))
	table.Comment = '#'
	rows, err := table.ReadAll()
	if err != nil {
		return nil, errors.Wrap(err, "datasets: glyphs: letters.csv")
	}
	if len(rows) < 2 || len(rows[0]) < 3 {
		return nil, errors.Errorf("datasets: glyphs: letters.csv: must have a header and the faces, got %d lines", len(rows))
	}
	rows = rows[1:]
	atlas, ok := decoded.(*image.Gray)
	if want := image.Pt(len(letterNames)*cellSide, len(rows)*cellSide); !ok || atlas.Rect.Size() != want {
		return nil, errors.Errorf("datasets: glyphs: letters.png must have %[2]v grey pixels for the rows of letters.csv, got %[1]v",
			decoded.Bounds().Size(), want)
	}
	var designs []glyphDesign
	last := ""
	for i, row := range rows {
		if row[0] != split.String() {
			continue
		}
		if name := row[1]; name != last {
			weight, err := strconv.Atoi(row[2])
			if err != nil || weight < 1 {
				return nil, errors.Errorf("datasets: glyphs: letters.csv: weight of %[2]s must be a positive integer, got %[1]q", row[2], name)
			}
			designs = append(designs, glyphDesign{weight: weight})
			last = name
		}
		face := make([]letter, len(letterNames))
		for column := range face {
			face[column] = letter{atlas.Pix[atlas.PixOffset(column*cellSide, i*cellSide):], atlas.Stride}
		}
		design := &designs[len(designs)-1]
		design.faces = append(design.faces, face)
	}
	return designs, nil
}

// spread returns n indices of designs, in proportion to their weights and evenly distributed, so
// that any sequence of images has all designs: it always picks the design that is furthest behind.
func spread(designs []glyphDesign, n int) []int {
	total := 0
	for _, design := range designs {
		total += design.weight
	}
	due := make([]int, len(designs))
	order := make([]int, n)
	for turn := range order {
		next := 0
		for i, design := range designs {
			if due[i] += design.weight; due[i] > due[next] {
				next = i
			}
		}
		due[next] -= total
		order[turn] = next
	}
	return order
}
