package transfer

import "math"

// drawWaves writes an image of smooth shapes with random contours: a sum of plane waves, whose
// wavelengths are between a seventh of the shorter side and twice that side, passes a sigmoid
// function.
func (c *changer) drawWaves(to []byte) {
	const terms = 6
	side := float64(min(c.Height, c.Width))
	var waveY, waveX, phase [terms]float64
	for i := range terms {
		sin, cos := math.Sincos(c.between(math.Pi))
		number := 2 * math.Pi / (side * 2 * math.Pow(14, -c.fraction()))
		waveY[i], waveX[i], phase[i] = number*sin, number*cos, c.between(math.Pi)
	}
	gain, level := 2*math.Pow(10, c.fraction()), c.between(0.5)
	c.paint(to, func(y, x float64) float64 {
		sum := 0.0
		for i := range terms {
			sum += math.Cos(waveY[i]*y + waveX[i]*x + phase[i])
		}
		return 1 / (1 + math.Exp(-gain*(sum/math.Sqrt(terms)-level)))
	})
}

// figure is an ellipse, a rectangle or a line, filled or outlined.
type figure struct {
	y, x, sin, cos float64 // its centre and direction
	length, width  float64 // half of its extents
	round          bool
	line           float64 // half of the width of its outline, or 0
	erased         bool    // from the figures before it
}

// distance returns the distance of a point from the figure's edge, negative within, for ellipses
// roughly.
func (f figure) distance(y, x float64) float64 {
	along, across := f.cos*(x-f.x)+f.sin*(y-f.y), f.cos*(y-f.y)-f.sin*(x-f.x)
	distance := max(math.Abs(along)-f.length, math.Abs(across)-f.width)
	if f.round {
		distance = (math.Hypot(along/f.length, across/f.width) - 1) * min(f.length, f.width)
	}
	if f.line > 0 {
		distance = math.Abs(distance) - f.line
	}
	return distance
}

// drawFigures writes an image of one to five geometric figures.
func (c *changer) drawFigures(to []byte) {
	side := float64(min(c.Height, c.Width))
	drawn := make([]figure, 1+int(5*c.fraction()))
	for i := range drawn {
		f := figure{y: (0.15 + 0.7*c.fraction()) * float64(c.Height), x: (0.15 + 0.7*c.fraction()) * float64(c.Width)}
		turn := c.between(math.Pi)
		if c.fraction() < 0.5 {
			turn = math.Round(turn*2/math.Pi) * math.Pi / 2
		}
		f.sin, f.cos = math.Sincos(turn)
		f.length, f.width = side*(0.1+0.4*c.fraction()), side*(0.1+0.3*c.fraction())
		switch kind := c.fraction(); {
		case kind < 0.5: // a line
			f.width = side * (0.02 + 0.1*c.fraction())
		case kind < 0.75:
			f.line = side * (0.02 + 0.06*c.fraction())
		}
		f.round = c.fraction() < 0.5
		f.erased = i > 0 && c.fraction() < 0.2
		drawn[i] = f
	}
	c.paint(to, func(y, x float64) float64 {
		ink := 0.0
		for _, f := range drawn {
			covered := min(max(0.5-f.distance(y, x), 0), 1)
			if f.erased {
				ink = min(ink, 1-covered)
			} else {
				ink = max(ink, covered)
			}
		}
		return ink
	})
}

// paint writes an image that mixes two random colours, the second with the share that mix returns
// for a pixel.
func (c *changer) paint(to []byte, mix func(y, x float64) float64) {
	low, high := make([]float64, c.Channels), make([]float64, c.Channels)
	for channel := range c.Channels {
		low[channel], high[channel] = 255*c.fraction(), 255*c.fraction()
		if c.fraction() < 0.5 { // like a background
			low[channel] = 0
		}
		if c.fraction() < 0.5 {
			high[channel] = 255
		}
	}
	for y := range c.Height {
		for x := range c.Width {
			t := mix(float64(y), float64(x))
			for channel := range c.Channels {
				to[(channel*c.Height+y)*c.Width+x] = byte(low[channel] + t*(high[channel]-low[channel]) + 0.5)
			}
		}
	}
}
