package report

import (
	"bytes"
	"math"
	"testing"
)

// bowl is x^2 + 4 y^2 on an uneven grid.
func bowl(at ...float64) Levels {
	l := Levels{Name: "bowl", At: at}
	for i := range 41 {
		l.X = append(l.X, -2+4*float64(i)/40+0.02*math.Sin(float64(i)))
	}
	for i := range 33 {
		l.Y = append(l.Y, -1.5+3*float64(i)/32)
	}
	for _, y := range l.Y {
		for _, x := range l.X {
			l.Values = append(l.Values, x*x+4*y*y)
		}
	}
	return l
}

// The level line of an ellipse lies on the ellipse, has its length, and is closed.
func TestLevelLines(t *testing.T) {
	l := bowl(1)
	degree := map[[2]float64]int{}
	length := 0.0
	for _, s := range l.segments(1) {
		for _, end := range s {
			near(t, "value on the line", end.X*end.X+4*end.Y*end.Y, 1, 0.02)
			degree[[2]float64{math.Round(end.X*1e9) + 0, math.Round(end.Y*1e9) + 0}]++
		}
		length += math.Hypot(s[1].X-s[0].X, s[1].Y-s[0].Y)
	}
	near(t, "perimeter of the ellipse", length, 4.84422, 0.02)
	for end, n := range degree {
		if n != 2 {
			t.Errorf("%d segments meet at %v, want 2", n, end)
		}
	}
}

// In a cell with two high corners on a diagonal, the corners on the other side of the mean are cut
// off.
func TestLevelLinesOfASaddle(t *testing.T) {
	for _, c := range []struct {
		level  float64
		across bool
	}{{level: 0.4}, {level: 0.6, across: true}} {
		l := Levels{X: []float64{0, 1}, Y: []float64{0, 1}, Values: []float64{1, 0, 0, 1}}
		segments := l.segments(c.level)
		if len(segments) != 2 {
			t.Fatalf("level %v: %d segments, want 2", c.level, len(segments))
		}
		for _, s := range segments {
			across := (s[0].X > s[0].Y) != (s[1].X > s[1].Y)
			if across != c.across {
				t.Errorf("level %v: segment %v crosses the high diagonal: %v, want %v", c.level, s, across, c.across)
			}
		}
	}
}

func TestPlane(t *testing.T) {
	draw := func() []byte {
		many := Track{Method: "SGLD"}
		for i := range 1000 {
			angle := float64(i)
			many.X, many.Y = append(many.X, math.Cos(angle)), append(many.Y, math.Sin(angle)/2)
		}
		f, err := Plane("theta1", "theta2", []Levels{bowl(0.5, 1, 2)}, []Track{
			{Method: "SGD", X: []float64{2, 1, 0}, Y: []float64{1, -1, 0}, Joined: true}, many, {Method: "one", X: []float64{0}, Y: []float64{0}, Joined: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		png, err := f.PNG()
		if err != nil {
			t.Fatal(err)
		}
		return png
	}
	if first := draw(); !bytes.Equal(first, draw()) {
		t.Error("the same input gave two different files")
	}
}

func TestPlaneRefuses(t *testing.T) {
	track := Track{Method: "SGD", X: []float64{1}, Y: []float64{2}}
	broken := func(change func(l *Levels)) []Levels {
		l := bowl(1)
		change(&l)
		return []Levels{l}
	}
	for _, c := range []struct {
		name    string
		levels  []Levels
		tracks  []Track
		message string
	}{
		{"nothing", nil, nil, "at least 1 method, got none"},
		{"the same name twice", nil, []Track{track, track}, `distinct names, got "SGD" for method 1`},
		{"lengths", nil, []Track{{Method: "SGD", X: []float64{1, 2}, Y: []float64{1}}}, "same length, got 2 and 1"},
		{"NaN", nil, []Track{{Method: "SGD", X: []float64{math.NaN()}, Y: []float64{1}}}, "must be finite, got NaN at 0"},
		{"no points", nil, []Track{{Method: "SGD"}}, "at least 1 value, got none"},
		{"values", broken(func(l *Levels) { l.Values = l.Values[1:] }), nil, "must have 33 x 41 values, one per grid point, got 1352"},
		{"grid", broken(func(l *Levels) { l.X[3] = l.X[2] }), nil, "at 3"},
		{"one column", broken(func(l *Levels) { l.X = l.X[:1] }), nil, "at least 2"},
		{"no levels", broken(func(l *Levels) { l.At = nil }), nil, "At: must have at least 1 value"},
		{"infinite value", broken(func(l *Levels) { l.Values[5] = math.Inf(1) }), nil, "must be finite, got +Inf at 5"},
	} {
		_, err := Plane("x", "y", c.levels, c.tracks)
		refused(t, c.name, err, c.message)
	}
}
