package main

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/random"
)

// How the simulated returns are generated.
const (
	trueStd     = 0.15
	trueFreedom = 10
	trueStart   = 0.01
)

// series is daily log returns in order, when they were, and the scales they were drawn with, if
// known.
type series struct {
	axis                   string
	times, returns, scales []float64
}

// maxDays is the longest series whose walk target can compute: memory^-days must be a float64.
const maxDays = 5000

// made is a simulated series of Student-t returns with trueFreedom degrees of freedom, the
// logarithms of whose scales walk at random.
func made(days int) series {
	s := series{axis: "day"}
	steps, noise := make([]float64, days), make([]float64, days*(trueFreedom+1))
	random.Normals(steps, 0, random.Address{Seed: 1})
	random.Normals(noise, 0, random.Address{Seed: 1, Stream: 1})
	walk := math.Log(trueStart)
	for day, step := range steps {
		walk += trueStd * step
		z := noise[day*(trueFreedom+1):][:trueFreedom+1]
		chiSquare := 0.0
		for _, x := range z[1:] {
			chiSquare += x * x
		}
		s.times, s.scales = append(s.times, float64(day)), append(s.scales, math.Exp(walk))
		s.returns = append(s.returns, s.scales[day]*z[0]/math.Sqrt(chiSquare/trueFreedom))
	}
	return s
}

// read is the log returns of a file of daily closes, in order: a heading, then lines such as
// 2008-05-01,1409.34.
func read(path string) (series, error) {
	s := series{axis: "year"}
	file, err := os.Open(path)
	if err != nil {
		return s, errors.Wrap(err, "volatility")
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return s, errors.Wrapf(err, "volatility: %s", path)
	}
	last := math.NaN()
	for i, row := range rows[min(1, len(rows)):] {
		day, err := time.Parse(time.DateOnly, row[0])
		if err != nil {
			return s, errors.Wrapf(err, "volatility: %s: row %d: the date, wants one such as 2008-05-01", path, i+2)
		}
		if len(row) < 2 {
			return s, errors.Errorf("volatility: %s: row %d: got %d columns, wants a date and a close", path, i+2, len(row))
		}
		price, err := strconv.ParseFloat(row[1], 64)
		if err != nil || !(price > 0 && price < math.Inf(1)) {
			return s, errors.Errorf("volatility: %s: row %d: the close is %q, wants a positive number", path, i+2, row[1])
		}
		if i > 0 {
			s.returns = append(s.returns, math.Log(price/last))
			s.times = append(s.times, float64(day.Year())+float64(day.YearDay()-1)/365.25)
		}
		last = price
	}
	if n := len(s.returns); n < 2 || n > maxDays {
		return s, errors.Errorf("volatility: %s: got %d returns, wants 2 to %d", path, n, maxDays)
	}
	return s, nil
}
