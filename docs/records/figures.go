package main

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/report"
)

// figure is a figure made from printed tables, for an experiment whose program prints tables only.
// A point is a row of a table; its coordinates are the numbers at the beginning of two of its
// cells.
type figure struct {
	path   string
	title  string // of the tables
	x, y   string // titles of the columns, and of the axes
	groups []group
	equal  []float64 // draws the line x = y between these two values; none if nil
}

// group is the points that have one colour.
type group struct {
	name   string
	record string
	rows   []string
	points [][2]float64 // published ones, which no record has
}

var figures = []figure{
	{
		path: "experiments/goldstandard/goldstandard.png", title: "against HMC", x: "agreement", y: "total variation",
		groups: []group{
			{"HMC, second seed", "goldstandard", []string{"HMC, seed 2 against seed 1"}, nil},
			{"SGD, approximations", "goldstandard", []string{
				"SGD", "deep ensemble", "MC dropout", "SWAG", "Laplace, last layer", "Bayes by Backprop",
			}, nil},
			{"SGLD, pSGLD", "goldstandard", []string{"SGLD", "pSGLD, Gamma none", "pSGLD, Gamma by Hutchinson", "pSGLD, G frozen"}, nil},
			{"with momentum", "goldstandard", []string{
				"SGHMC", "cyclical SGHMC", "preconditioned SGHMC", "BAOAB", "SGNHT", "CCAdL", "SMILE", "UBU, symmetric minibatches",
			}, nil},
			{"MCLMC, all data", "goldstandard", []string{"MCLMC, all data"}, nil},
		},
	},
	{
		path: "experiments/cifar/cifar.png", title: "against HMC", x: "agreement", y: "total variation",
		groups: []group{
			{"SGD, 7 epochs", "cifar", []string{"runs/sgd"}, nil},
			{"SGHMC from there", "cifar", []string{"runs/csghmc", "runs/csghmc2"}, nil},
			{"2 networks, 15 epochs", "cifar-starts", []string{"runs/start"}, nil},
			{"4 networks, 16 epochs", "cifar-members", []string{"runs/members"}, nil},
			{"published, SGD 500 epochs", "", nil, [][2]float64{{0.855, 0.190}}},
			{"published, samplers 10 000 epochs", "", nil, [][2]float64{{0.915, 0.110}, {0.920, 0.109}, {0.927, 0.099}, {0.910, 0.111}}},
		},
	},
	{
		path: "experiments/perceptrons/perceptrons.png", title: "784-400-400-10", x: "paper %", y: "test error %",
		groups: []group{
			{"pSGLD", "perceptrons", []string{"pSGLD, T = 1/N"}, nil}, {"SGLD", "perceptrons", []string{"SGLD, T = 1/N"}, nil},
			{"RMSprop", "perceptrons", []string{"RMSprop"}, nil}, {"SGD", "perceptrons", []string{"SGD"}, nil},
		},
		equal: []float64{1.3, 1.8},
	},
}

// drawFigures writes all figures below root.
func drawFigures(root string) error {
	for _, f := range figures {
		tracks, err := f.tracks()
		if err != nil {
			return errors.WithMessage(err, f.path)
		}
		var lines []report.Levels
		if e := f.equal; e != nil {
			lines = append(lines, report.Levels{Name: "equal", X: e, Y: e, Values: []float64{0, e[0] - e[1], e[1] - e[0], 0}, At: []float64{0}})
		}
		drawn, err := report.Plane(f.x, f.y, lines, tracks)
		if err != nil {
			return err
		}
		if err := drawn.Save(filepath.Join(root, filepath.FromSlash(f.path))); err != nil {
			return err
		}
	}
	return nil
}

func (f figure) tracks() (tracks []report.Track, err error) {
	for _, g := range f.groups {
		track := report.Track{Method: g.name}
		points := g.points
		if g.record != "" {
			r := &Record{}
			if err := read(filepath.Join("docs", "records", g.record+".json"), r); err != nil {
				return nil, err
			}
			table, err := r.printed(f.title)
			if err != nil {
				return nil, err
			}
			for _, row := range g.rows {
				x, err := numberIn(table, row, f.x)
				if err != nil {
					return nil, err
				}
				y, err := numberIn(table, row, f.y)
				if err != nil {
					return nil, err
				}
				points = append(points, [2]float64{x, y})
			}
		}
		for _, p := range points {
			track.X, track.Y = append(track.X, p[0]), append(track.Y, p[1])
		}
		tracks = append(tracks, track)
	}
	return tracks, nil
}

// numberIn returns the number at the beginning of a cell of a printed table, by the titles of its
// row and column. Columns are right-aligned and at least two spaces apart.
func numberIn(table, row, column string) (float64, error) {
	lines := strings.Split(table, "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, row+"  ") })
	end := strings.Index(lines[0], "  "+column)
	if at < 0 || end < 0 {
		return 0, errors.Errorf("records: the table has no row %q with a column %q", row, column)
	}
	until := len([]rune(lines[0][:end])) + 2 + len([]rune(column))
	cell := []rune(lines[at])
	words := strings.Split(strings.TrimRight(string(cell[:min(until, len(cell))]), " "), "  ")
	number, _, _ := strings.Cut(strings.TrimSpace(words[len(words)-1]), " ")
	v, err := strconv.ParseFloat(number, 64)
	return v, errors.Wrapf(err, "records: row %q, column %q", row, column)
}
