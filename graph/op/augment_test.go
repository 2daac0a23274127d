package op

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

func TestAugmentRefuses(t *testing.T) {
	image, header := tensor.Shape{2, 3, 8, 9}, tensor.Shape{3}
	fine := Augment{Flip: true, Shift: 7, Rotation: 180, Zoom: 4, Contrast: 4, Brightness: 4, Erase: 0.99, Stream: 1}
	if _, err := fine.Shape([]tensor.Shape{image, header}); err != nil {
		t.Error(err)
	}
	for _, change := range []func(g *Augment){
		func(g *Augment) { g.Shift = -1 }, func(g *Augment) { g.Shift = 8 },
		func(g *Augment) { g.Rotation = -1 }, func(g *Augment) { g.Rotation = 180.1 }, func(g *Augment) { g.Rotation = math.NaN() },
		func(g *Augment) { g.Zoom = -0.1 }, func(g *Augment) { g.Zoom = 4.1 }, func(g *Augment) { g.Zoom = math.NaN() },
		func(g *Augment) { g.Contrast = -0.1 }, func(g *Augment) { g.Contrast = 4.1 }, func(g *Augment) { g.Contrast = math.NaN() },
		func(g *Augment) { g.Brightness = -0.1 }, func(g *Augment) { g.Brightness = 4.1 }, func(g *Augment) { g.Brightness = math.NaN() },
		func(g *Augment) { g.Erase = -0.1 }, func(g *Augment) { g.Erase = 1 }, func(g *Augment) { g.Erase = math.NaN() },
		func(g *Augment) { g.Erase = 0.05 }, // less than a pixel
		func(g *Augment) { g.Stream = 0 }, func(g *Augment) { g.Stream = random.OrderStream },
		func(g *Augment) { *g = Augment{Stream: 1} },
	} {
		g := fine
		change(&g)
		refuse(t, g, image, header)
	}
	refuse(t, fine, image)
	refuse(t, fine, tensor.Shape{2, 3, 72}, header)
}

// augmented returns the results of applying g to one image, batch of them in each of the steps.
func augmented(t *testing.T, g Augment, image []float64, height, width, batch, steps int) (all [][]float64) {
	t.Helper()
	b := graph.New(tensor.Float64)
	x := b.Data("x", tensor.Float64, batch, 1, height, width)
	b.Output("y", b.Apply(g, x, b.Header()))
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	s, err := program.Load(host, graph.LoadOptions{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range batch {
		if err := graph.Write(s, "x", 0, i*len(image), image); err != nil {
			t.Fatal(err)
		}
	}
	for range steps {
		y := make([]float64, batch*len(image))
		if err := s.Run(1); err != nil {
			t.Fatal(err)
		}
		if err := graph.Read(s, "y", 0, 0, y); err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			all = append(all, y[i*len(image):(i+1)*len(image)])
		}
	}
	return all
}

// Mirroring and moving make 2 x 5 x 5 images, each equally often; chi-squared with 49 degrees of
// freedom is above 85 only once in 1000.
func TestAugmentIsUniform(t *testing.T) {
	const height, width, batch, steps = 7, 6, 100, 50
	image := make([]float64, height*width)
	image[3*width+2], image[3*width+3] = 1, 2 // far from the edges, and not its own mirror image
	counts := map[[2]int]int{}
	for _, y := range augmented(t, Augment{Flip: true, Shift: 2, Stream: 1}, image, height, width, batch, steps) {
		one, two := -1, -1
		for i, v := range y {
			switch v {
			case 1:
				one = i
			case 2:
				two = i
			}
		}
		counts[[2]int{one, two}]++
	}
	expected, chi := batch*steps/50., 0.0
	for _, n := range counts {
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	if len(counts) != 50 || chi > 85 {
		t.Errorf("%d images with chi-squared %v, want 50 and at most 85", len(counts), chi)
	}
}

// The centre of the square of zeros is any pixel, so pixels near the edges are erased less often: a
// square of side 3 erases a pixel only if its centre, one of H W, is at most 1 away.
func TestAugmentErasesEvenly(t *testing.T) {
	const height, width, batch, steps = 6, 7, 100, 50
	image := make([]float64, height*width)
	for i := range image {
		image[i] = 1
	}
	zeros := make([]float64, len(image))
	for _, y := range augmented(t, Augment{Erase: 0.5, Stream: 1}, image, height, width, batch, steps) {
		for i, v := range y {
			zeros[i] += 1 - v
		}
	}
	for i, n := range zeros {
		p, q := i/width, i%width
		rows, columns := 3-count(p == 0)-count(p == height-1), 3-count(q == 0)-count(q == width-1)
		share := float64(rows*columns) / (height * width)
		if std := math.Sqrt(batch * steps * share * (1 - share)); math.Abs(n-batch*steps*share) > 4*std {
			t.Errorf("pixel %d %d is erased %v times, want %v +- %v", p, q, n, batch*steps*share, std)
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// The angle is uniform: a bright pixel moves along a circle, where its centre of mass shows the
// angle.
func TestAugmentTurns(t *testing.T) {
	const side, batch, steps, rotation = 33, 50, 20, 30.0
	image := make([]float64, side*side)
	image[16*side+28] = 1
	var sum, square, most float64
	for _, y := range augmented(t, Augment{Rotation: rotation, Stream: 1}, image, side, side, batch, steps) {
		var up, right, mass float64
		for i, v := range y {
			up, right, mass = up-v*float64(i/side-16), right+v*float64(i%side-16), mass+v
		}
		if distance := math.Hypot(up/mass, right/mass); math.Abs(distance-12) > 0.5 {
			t.Fatalf("at a distance of %v, want 12", distance)
		}
		angle := math.Atan2(up, right) * 180 / math.Pi
		sum, square, most = sum+angle, square+angle*angle, max(most, math.Abs(angle))
	}
	n := float64(batch * steps)
	if mean := sum / n; math.Abs(mean) > 3*rotation/math.Sqrt(3*n) {
		t.Errorf("mean angle %v of %v, want 0", mean, n)
	}
	if variance := square / n; math.Abs(variance/(rotation*rotation/3)-1) > 0.1 || most > rotation+2 || most < rotation-2 {
		t.Errorf("variance %v, want %v, and at most %v, want %v", variance, rotation*rotation/3, most, rotation)
	}
}

// The factor of a zoom or a contrast f is, with equal probability, uniform on 1 to 1+f or the
// inverse of such a number. The slope of a ramp shows the zoom, an image of ones the contrast and,
// added to it, the brightness.
func TestAugmentChangesFactors(t *testing.T) {
	const side, batch, steps = 33, 50, 20
	ramp, ones := make([]float64, side*side), make([]float64, side*side)
	for i := range ones {
		ramp[i], ones[i] = float64(i%side-side/2), 1
	}
	for _, row := range []struct {
		name  string
		g     Augment
		image []float64
		of    func(y []float64) float64
	}{
		{"zoom", Augment{Zoom: 0.5, Stream: 1}, ramp, func(y []float64) float64 { return 4 / y[side/2*side+side/2+4] }},
		{"contrast", Augment{Contrast: 0.5, Stream: 1}, ones, func(y []float64) float64 { return y[7] }},
	} {
		var larger []float64 // factors above 1, and the inverses of those below
		above := 0
		for _, y := range augmented(t, row.g, row.image, side, side, batch, steps) {
			f := row.of(y)
			if f > 1 {
				above++
			}
			larger = append(larger, max(f, 1/f))
		}
		sum := 0.0
		for _, f := range larger {
			sum += f
			if f > 1.5+1e-12 {
				t.Errorf("%s: a factor of %v, want at most 1.5", row.name, f)
			}
		}
		n := float64(batch * steps)
		if mean, std := sum/n, 0.5/math.Sqrt(12*n); math.Abs(mean-1.25) > 4*std {
			t.Errorf("%s: mean factor %v, want 1.25", row.name, mean)
		}
		if math.Abs(float64(above)-n/2) > 4*math.Sqrt(n)/2 {
			t.Errorf("%s: %d of %v factors are above 1", row.name, above, n)
		}
	}
	var sum, square float64
	for _, y := range augmented(t, Augment{Brightness: 0.5, Stream: 1}, ones, side, side, batch, steps) {
		if y[0] != y[len(y)-1] || math.Abs(y[0]-1) > 0.5 {
			t.Fatalf("brightness: %v and %v, want the same within 0.5 of 1", y[0], y[len(y)-1])
		}
		sum, square = sum+y[0]-1, square+(y[0]-1)*(y[0]-1)
	}
	if n := float64(batch * steps); math.Abs(sum/n) > 4*0.5/math.Sqrt(3*n) || math.Abs(square/n*12-1) > 0.15 {
		t.Errorf("brightness: mean %v and variance %v, want 0 and 1/12", sum/n, square/n)
	}
}

// sincos4 returns the cosine and the sine of four times its argument.
func TestTurn(t *testing.T) {
	for k := -100; k <= 100; k++ {
		angle := math.Pi * float64(k) / 100
		cosine, sine := sincos4(angle / 4)
		if math.Abs(cosine-math.Cos(angle)) > 2e-15 || math.Abs(sine-math.Sin(angle)) > 2e-15 {
			t.Errorf("%v: %v %v, want %v %v", angle, cosine, sine, math.Cos(angle), math.Sin(angle))
		}
	}
}
