package main

import (
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/random"
)

// The parameters of the simulated returns.
const (
	trueStd     = 0.15
	trueFreedom = 10
	trueStart   = 0.01
)

// series has daily log returns in order, their times, and the scales that they were drawn with, if
// known.
type series struct {
	axis                   string
	times, returns, scales []float64
}

// maxDays is the maximum length of a series: target computes memory^-days, which must not overflow.
const maxDays = 5000

// made simulates a series of Student-t returns with trueFreedom degrees of freedom, whose log
// scales are a random walk.
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

// read returns the log returns of a file of daily closes in order of time: a heading, then lines
// such as 2008-05-01,1409.34.
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
	var last float64
	var before time.Time
	for i, row := range rows[min(1, len(rows)):] {
		day, err := time.Parse(time.DateOnly, row[0])
		if err != nil {
			return s, errors.Wrapf(err, "volatility: %s: row %d: the date must be like 2008-05-01", path, i+2)
		}
		if len(row) < 2 {
			return s, errors.Errorf("volatility: %s: row %d: must have a date and a close, got %[3]d columns", path, i+2, len(row))
		}
		price, err := strconv.ParseFloat(row[1], 64)
		if err != nil || !(price > 0 && price < math.Inf(1)) {
			return s, errors.Errorf("volatility: %s: row %d: the close must be a positive number, got %q", path, i+2, row[1])
		}
		if !day.After(before) {
			return s, errors.Errorf("volatility: %s: row %d: days must be in order of time, got %s after %s", path, i+2,
				row[0], before.Format(time.DateOnly))
		}
		if i > 0 {
			s.returns = append(s.returns, math.Log(price/last))
			s.times = append(s.times, float64(day.Year())+float64(day.YearDay()-1)/365.25)
		}
		last, before = price, day
	}
	if n := len(s.returns); n < 2 || n > maxDays {
		return s, errors.Errorf("volatility: %s: must have 2 to %[3]d returns, got %[2]d", path, n, maxDays)
	}
	if slices.Max(s.returns) == 0 && slices.Min(s.returns) == 0 {
		return s, errors.Errorf("volatility: %s: closes must differ, all are %v", path, last)
	}
	return s, nil
}
