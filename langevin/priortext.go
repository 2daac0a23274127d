package langevin

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// PriorForms lists the texts that ParsePrior reads, with words in capitals for numbers.
const PriorForms = "flat, gaussian:S, laplace:B, student-t:DOF,S, scale-mixture:WEIGHT,WIDE,NARROW, fan-in:GAIN or start:S"

// ParsePrior parses a prior, such as "flat", "gaussian:0.3", "laplace:0.1", "student-t:3,0.1",
// "scale-mixture:0.5,1,0.0025", "fan-in:2" or "start:0.01".
func ParsePrior(text string) (Prior, error) {
	family, arguments, _ := strings.Cut(text, ":")
	var numbers []float64
	if arguments != "" {
		for _, s := range strings.Split(arguments, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil {
				return Prior{}, errors.Errorf("langevin: prior %q: %q is not a number", text, s)
			}
			numbers = append(numbers, v)
		}
	}
	var p Prior
	switch {
	case family == "flat" && len(numbers) == 0:
		p = Flat()
	case family == "gaussian" && len(numbers) == 1:
		p = Gaussian(numbers[0])
	case family == "laplace" && len(numbers) == 1:
		p = Laplace(numbers[0])
	case family == "student-t" && len(numbers) == 2:
		p = StudentT(numbers[0], numbers[1])
	case family == "scale-mixture" && len(numbers) == 3:
		p = ScaleMixture(numbers[0], numbers[1], numbers[2])
	case family == "fan-in" && len(numbers) == 1:
		p = FanIn(numbers[0])
	case family == "start" && len(numbers) == 1:
		p = Start(numbers[0])
	default:
		return p, errors.Errorf("langevin: prior must be %s, got %q", PriorForms, text)
	}
	return p, p.Validate()
}

// String returns the text that ParsePrior reads as this prior.
func (p Prior) String() string {
	text := func(family string, numbers ...float64) string {
		var texts []string
		for _, v := range numbers {
			texts = append(texts, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return family + ":" + strings.Join(texts, ",")
	}
	switch p.Kind {
	case FlatPrior:
		return "flat"
	case GaussianPrior:
		return text("gaussian", p.Scale)
	case LaplacePrior:
		return text("laplace", p.Scale)
	case StudentTPrior:
		return text("student-t", p.DoF, p.Scale)
	case ScaleMixturePrior:
		return text("scale-mixture", p.Weight, p.Scale, p.Narrow)
	case FanInPrior:
		return text("fan-in", p.Scale)
	case StartPrior:
		return text("start", p.Scale)
	}
	return "prior of family " + strconv.Itoa(int(p.Kind))
}
