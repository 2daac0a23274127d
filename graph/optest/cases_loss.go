package optest

import (
	"fmt"
	"math"
	"slices"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
)

// exponent is the reason for the looser tolerance of exponentials: rounding the argument z makes a
// relative error of z epsilon in exp(z), and |z| is some tens before exp(z) becomes negligible.
const exponent = "the error of an exponent is that of its argument"

func naiveSoftmax(logits []float64, classes int) []float64 {
	p := make([]float64, len(logits))
	for row := 0; row < len(logits); row += classes {
		largest, total := math.Inf(-1), 0.0
		for _, z := range logits[row : row+classes] {
			largest = math.Max(largest, z)
		}
		for _, z := range logits[row : row+classes] {
			total += math.Exp(z - largest)
		}
		for k := row; k < row+classes; k++ {
			p[k] = math.Exp(logits[k]-largest) / total
		}
	}
	return p
}

func naiveLogSoftmax(logits []float64, classes int) []float64 {
	y := make([]float64, len(logits))
	for i, z := range logits {
		row := logits[i/classes*classes:][:classes]
		largest, total := slices.Max(row), 0.0
		for _, other := range row {
			total += math.Exp(other - largest)
		}
		y[i] = z - largest - math.Log(total)
	}
	return y
}

func naiveCrossEntropy(in [][]float64) []float64 {
	logits, labels := in[0], in[1]
	classes := len(logits) / len(labels)
	total := 0.0
	for row, label := range labels {
		largest, sum := math.Inf(-1), 0.0
		for _, z := range logits[row*classes : (row+1)*classes] {
			largest = math.Max(largest, z)
		}
		for _, z := range logits[row*classes : (row+1)*classes] {
			sum += math.Exp(z - largest)
		}
		total += largest + math.Log(sum) - logits[row*classes+int(label)]
	}
	return []float64{total / float64(len(labels))}
}

func naiveAccuracy(in [][]float64) []float64 {
	logits, labels := in[0], in[1]
	classes, right := len(logits)/len(labels), 0.0
	for row, label := range labels {
		best := 0
		for k := range classes {
			if logits[row*classes+k] > logits[row*classes+best] {
				best = k
			}
		}
		if best == int(label) {
			right++
		}
	}
	return []float64{right / float64(len(labels))}
}

func lossCases() []Case {
	var cases []Case
	for _, size := range [][2]int{{1, 1}, {1, 10}, {31, 2}, {33, 31}, {257, 10}, {3, 257}} {
		batch, classes := size[0], size[1]
		for name, fill := range map[string]Fill{"": Normal, "large ": Large} {
			logits := Float(fill, batch, classes)
			cases = append(cases, Case{
				Name: fmt.Sprintf("cross entropy %s%d", name, size), Op: op.CrossEntropy{},
				Inputs: []Input{logits, Labels(classes, batch)}, Naive: naiveCrossEntropy, Terms: batch * classes,
				Loosen: 8, Reason: exponent,
			}, Case{
				Name: fmt.Sprintf("softmax %s%d", name, size), Op: op.Softmax{}, Inputs: []Input{logits}, Terms: classes, NoGradient: name != "",
				Naive:  func(in [][]float64) []float64 { return naiveSoftmax(in[0], classes) },
				Loosen: 8, Reason: exponent,
			}, Case{
				Name: fmt.Sprintf("log softmax %s%d", name, size), Op: array.LogSoftmax{}, Inputs: []Input{logits}, Terms: classes,
				Naive:  func(in [][]float64) []float64 { return naiveLogSoftmax(in[0], classes) },
				Loosen: 8, Reason: exponent,
			})
		}
		for name, fill := range map[string]Fill{"": Normal, "of ties ": Ties} {
			cases = append(cases, Case{
				Name: fmt.Sprintf("accuracy %s%d", name, size), Op: op.Accuracy{}, NoGradient: true,
				Inputs: []Input{Float(fill, batch, classes), Labels(classes, batch)}, Naive: naiveAccuracy, Terms: 1,
			})
		}
	}
	return cases
}
