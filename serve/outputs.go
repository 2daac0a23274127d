package serve

import (
	"encoding/binary"
	"math"

	"github.com/pollen-ml/pollen/bayes"
)

// Types of the protocol's tensors that the server uses.
const (
	typeUint8 = "UINT8"
	typeInt32 = "INT32"
	typeFP32  = "FP32"
	typeBool  = "BOOL"
	typeBytes = "BYTES"
)

// output is an output tensor, with one value for each image, or one for each image and class.
type output struct {
	name, datatype string
	byClass        bool
	// lacks returns the reason why a run does not have the output, or "".
	lacks func(run *runInfo) string
	// values returns the values for all answers: []float32, []int32, []bool or []string.
	values func(answers []bayes.Answer, classNames []string) any
}

// outputs are the outputs of all models, in the order of answers.
var outputs = []output{
	{"probabilities", typeFP32, true, always, each(func(a *bayes.Answer, _ []string) []float32 { return narrowed(a.Probabilities...) })},
	{"class", typeBytes, false, always, each(func(a *bayes.Answer, _ []string) []string { return []string{a.Class} })},
	{"index", typeInt32, false, always, each(func(a *bayes.Answer, _ []string) []int32 { return []int32{int32(a.Index)} })},
	{"confidence", typeFP32, false, always, each(func(a *bayes.Answer, _ []string) []float32 { return narrowed(a.Confidence) })},
	{"entropy", typeFP32, false, always, each(func(a *bayes.Answer, _ []string) []float32 { return narrowed(a.Entropy) })},
	{"mutual_information", typeFP32, false, always, each(func(a *bayes.Answer, _ []string) []float32 { return narrowed(a.MutualInformation) })},
	{"prediction_set", typeBool, true, withoutLevel, each(func(a *bayes.Answer, classNames []string) []bool { return a.SetMembers(classNames) })},
	{"in_distribution", typeBool, false, withoutDetector, each(func(a *bayes.Answer, _ []string) []bool {
		return []bool{a.InDistribution != nil && *a.InDistribution}
	})},
	{"p_value", typeFP32, false, withoutDetector, each(func(a *bayes.Answer, _ []string) []float32 {
		if a.PValue == nil {
			return []float32{0}
		}
		return narrowed(*a.PValue)
	})},
	{"refer", typeBool, false, withoutRisk, each(func(a *bayes.Answer, _ []string) []bool { return []bool{a.Refer != nil && *a.Refer} })},
}

func always(*runInfo) string { return "" }

func withoutLevel(run *runInfo) string {
	if run.Level > 0 {
		return ""
	}
	return "the run was not calibrated on enough images for prediction sets of this level"
}

func withoutDetector(run *runInfo) string {
	if run.InDistributionRate > 0 {
		return ""
	}
	return "the run was not calibrated on enough images for in-distribution decisions"
}

func withoutRisk(run *runInfo) string {
	if run.Risk != nil {
		return ""
	}
	return "the server was not started with a risk"
}

// each joins the values of all answers.
func each[T any](of func(a *bayes.Answer, classNames []string) []T) func([]bayes.Answer, []string) any {
	return func(answers []bayes.Answer, classNames []string) any {
		var all []T
		for i := range answers {
			all = append(all, of(&answers[i], classNames)...)
		}
		return all
	}
}

func narrowed(values ...float64) []float32 {
	narrow := make([]float32, len(values))
	for i, v := range values {
		narrow[i] = float32(v)
	}
	return narrow
}

// appendTensor appends values in the binary form of the protocol: little-endian, a byte for a BOOL,
// and the length in 4 bytes before each element of BYTES.
func appendTensor(to []byte, values any) []byte {
	switch values := values.(type) {
	case []float32:
		for _, v := range values {
			to = binary.LittleEndian.AppendUint32(to, math.Float32bits(v))
		}
	case []int32:
		for _, v := range values {
			to = binary.LittleEndian.AppendUint32(to, uint32(v))
		}
	case []bool:
		for _, v := range values {
			bit := byte(0)
			if v {
				bit = 1
			}
			to = append(to, bit)
		}
	case []string:
		for _, v := range values {
			to = append(binary.LittleEndian.AppendUint32(to, uint32(len(v))), v...)
		}
	}
	return to
}
