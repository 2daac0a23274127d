package main

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
)

// contestant does a number of steps of the same work. run returns the seconds they took.
type contestant interface {
	run(steps int) (seconds float64, err error)
	close() error
}

// side is a contestant with its name and its time per step in each round.
type side struct {
	name  string
	does  contestant
	steps int // steps of a round
	limit int // maximum steps of a round, maxSteps if 0
	times []float64
}

// Bounds of a round: a side's steps take about roundSeconds, but are no more than maxSteps.
const (
	roundSeconds = 0.4
	maxSteps     = 100
)

// pause lets a side's threads, which may spin for a while after their work, come to rest before the
// next side's turn.
const pause = 30 * time.Millisecond

// alternate lets all sides take turns for rounds rounds. First each warms up and finds how many
// steps fill a round.
func alternate(ctx context.Context, sides []*side, rounds int) error {
	for _, s := range sides {
		if err := s.warm(); err != nil {
			return errors.Wrap(err, s.name)
		}
	}
	for range rounds {
		for _, s := range sides {
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(pause)
			seconds, err := s.does.run(s.steps)
			if err != nil {
				return errors.Wrap(err, s.name)
			}
			s.times = append(s.times, seconds/float64(s.steps))
		}
	}
	return nil
}

// warm runs two steps, and then enough of them to measure one.
func (s *side) warm() error {
	if _, err := s.does.run(2); err != nil {
		return err
	}
	limit := max(s.limit, maxSteps)
	for s.steps = 1; ; s.steps = min(limit, 4*s.steps) {
		seconds, err := s.does.run(s.steps)
		if err != nil {
			return err
		}
		if seconds > roundSeconds/8 || s.steps == limit {
			s.steps = max(1, min(limit, int(roundSeconds*float64(s.steps)/seconds)))
			return nil
		}
	}
}

// closeAll closes every side and returns the first error.
func closeAll(sides []*side) (first error) {
	for _, s := range sides {
		if err := s.does.close(); err != nil && first == nil {
			first = errors.Wrap(err, s.name)
		}
	}
	return first
}

// figures summarize a side's rounds, in seconds per step.
type figures struct {
	Median float64 `json:"median"`
	Min    float64 `json:"least"`
	Max    float64 `json:"most"`
	Rounds int     `json:"rounds"`
}

func (s *side) figures() figures {
	sorted := slices.Sorted(slices.Values(s.times))
	n := len(sorted)
	return figures{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1], Rounds: n}
}

// timed runs work and returns the seconds it took.
func timed(work func() error) (float64, error) {
	start := time.Now()
	err := work()
	return time.Since(start).Seconds(), err
}
