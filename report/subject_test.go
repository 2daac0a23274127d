package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

// drawn describes made-up subjects.
type drawn struct {
	runs, classes, examples, channels, side int
	labels, out, calibration, images, trace bool
}

// made returns made-up predictions, which lean towards the label by a skill.
func made(t *testing.T, random *rand.Rand, name string, labels []int32, classes int, sharpness, skill float64) *evaluate.Predictions {
	t.Helper()
	p, err := evaluate.NewPredictive(len(labels), classes)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, len(labels)*classes)
	for range 3 {
		for n, label := range labels {
			sum := 0.0
			logits := make([]float64, classes)
			for k := range logits {
				logits[k] = random.NormFloat64()
				if k == int(label) {
					logits[k] += skill
				}
				logits[k] = math.Exp(sharpness * logits[k])
				sum += logits[k]
			}
			for k := range logits {
				row[n*classes+k] = float32(logits[k] / sum)
			}
		}
		if err := p.Add(row, 1); err != nil {
			t.Fatal(err)
		}
	}
	all := p.Predictions(name, labels)
	all.Nonconformity = make([]float64, len(labels))
	for n, entropy := range all.Entropy {
		all.Nonconformity[n] = 2*entropy - 1
	}
	return all
}

func (d drawn) subjects(t *testing.T) []Subject {
	t.Helper()
	random := rand.New(rand.NewPCG(31, uint64(d.classes)))
	labels, outLabels := make([]int32, d.examples), make([]int32, d.examples)
	for n := range labels {
		labels[n], outLabels[n] = int32(random.IntN(d.classes)), int32(random.IntN(2*d.classes))
	}
	images := func() *Images {
		p := &Images{Pixels: make([]byte, d.examples*d.channels*d.side*d.side), Channels: d.channels, Height: d.side, Width: d.side, Ink: true}
		for i := range p.Pixels {
			p.Pixels[i] = byte(random.UintN(256))
		}
		for k := range d.classes {
			p.ClassNames = append(p.ClassNames, strings.Repeat("name ", k%4)+string(rune('A'+k%26)))
		}
		return p
	}
	in, out := images(), images()
	var subjects []Subject
	for i := range d.runs {
		s := Subject{Name: string(rune('a'+i)) + strings.Repeat(" long", 3*(i%2)), Optimizer: i == 0}
		sharpness := 1 + float64(i%4)
		c := evaluate.Case{In: made(t, random, "roses", labels, d.classes, sharpness, 2)}
		if !d.labels {
			c.In.Labels = nil
		}
		if d.out {
			c.Out = made(t, random, "weeds", outLabels, d.classes, sharpness, 0)
			c.Out.Labels = outLabels
		}
		var err error
		if d.calibration {
			if c.Calibration, err = evaluate.Calibrate(made(t, random, "held", slices.Repeat(labels, 2), d.classes, sharpness, 2)); err != nil {
				t.Fatal(err)
			}
		}
		if s.Assessment, err = evaluate.Assess(c); err != nil {
			t.Fatal(err)
		}
		if d.images {
			s.InImages, s.OutImages = in, out
		}
		if d.trace {
			s.Watched = "weight"
			for step := range 10 {
				decay := 1 / float64(1+step)
				s.ValidationSteps = append(s.ValidationSteps, float64(100*(step+1)))
				s.ValidationNLL, s.ValidationLoss = append(s.ValidationNLL, decay+0.2), append(s.ValidationLoss, decay+0.4)
			}
			s.WarmLosses = [][]float64{{2, 1, 0.3, 0.4}, {2.1, float64(i % 2)}, {1}}
			for range 60 {
				s.Trace = append(s.Trace, random.NormFloat64())
			}
		}
		subjects = append(subjects, s)
	}
	return subjects
}

var whole = drawn{runs: 2, classes: 3, examples: 60, channels: 3, side: 4, labels: true, out: true, calibration: true, images: true, trace: true}
