package bayes

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
)

// The values of Spec.Head that are not networks; the first is the default.
const (
	headLinear = "linear"
	headMLP    = "mlp:"
)

// Frozen reports whether all weights of an ONNX file are frozen, so that features are computed
// once. The specification must be resolved.
func (s Spec) Frozen() bool { return s.isPretrained() && s.Freeze == pretrained.FreezeAll }

// copyModel copies the model into the directory of a run, so that the run can be moved, and does
// not change if the original file does.
func (s Spec) copyModel(dir string) (*ModelFile, error) {
	if !s.isPretrained() {
		return nil, nil
	}
	files, digest, err := s.file.CopyTo(filepath.Join(dir, rundir.ModelDir))
	if err != nil {
		return nil, err
	}
	return &ModelFile{Files: files, Digest: digest}, nil
}

// checkPretrained refuses settings that apply only to ONNX files, and values that cannot be read.
func (s Spec) checkPretrained() error {
	for name, text := range map[string]string{"cut": s.Cut, "head": s.Head, "freeze": s.Freeze, "input": s.Input} {
		if text != "" && !s.isPretrained() {
			return invalid("%s applies to networks of ONNX files, such as model backbone.onnx, not to %s", name, s.NetworkName())
		}
	}
	if s.isPretrained() && s.Prior != nil && s.Prior.Kind == langevin.StartPrior && cmp.Or(s.Freeze, pretrained.FreezeAll) == pretrained.FreezeAll {
		return invalid("the prior start:S applies to weights of %s that are not frozen, and all are frozen: set freeze to %s or to names of weights",
			s.Network, pretrained.FreezeNone)
	}
	if s.Input != "" {
		if _, err := pretrained.ParseInput(s.Input); err != nil {
			return &InvalidError{err}
		}
	}
	if s.isPretrained() && s.Head != "" {
		if _, err := s.headNetwork(2); err != nil {
			return err
		}
	}
	return nil
}

// withModel returns the specification with the cut and the input that its file has, unless they
// are given.
func (s Spec) withModel() (Spec, error) {
	if !s.isPretrained() {
		return s, nil
	}
	var err error
	if s.Cut, s.Input, err = s.file.Resolve(s.Cut, s.Input); err != nil {
		return s, &InvalidError{err}
	}
	return s, nil
}

// startsAt reports whether the prior of a weight of an ONNX file is centred on its value in the
// file. The parameter is then the offset from that value.
func (s Spec) startsAt(weight string) bool {
	p := langevin.Posterior{Layers: s.Priors}
	if s.Prior != nil {
		p.Prior = *s.Prior
	}
	return p.PriorOf(weight).Kind == langevin.StartPrior
}

// starts returns, by name, the weights in the ONNX file whose parameters are offsets from them.
func (s Spec) starts() (map[string][]float64, error) {
	if !s.isPretrained() || !s.hasStartPrior() {
		return nil, nil
	}
	stem, err := s.stem()
	if err != nil {
		return nil, err
	}
	return stem.Starts(), nil
}

// fanIns returns the fan-ins of weights in the ONNX file, see langevin.Posterior.
func (s Spec) fanIns() (map[string]int, error) {
	if !s.isPretrained() {
		return nil, nil
	}
	stem, err := s.stem()
	if err != nil {
		return nil, err
	}
	return stem.FanIns(), nil
}

// moveStarts converts parameters that are offsets from the weights theirs to offsets from the
// weights ours, both by name. A name without weights has plain values instead of offsets.
func moveStarts(s samples.Sample, theirs, ours map[string][]float64) {
	for _, p := range s.Parameters {
		from, to := theirs[p.Name], ours[p.Name]
		for i := range p.Values {
			move := 0.0
			if i < len(from) {
				move += from[i]
			}
			if i < len(to) {
				move -= to[i]
			}
			p.Values[i] = float32(float64(p.Values[i]) + move)
		}
	}
}

// A prior start:S is N(w, S^2) around the value w that a weight has in the file, so that the
// weights in the file define the prior, and are not only a place to start.

// hasStartPrior reports whether a prior is centred on starting values.
func (s Spec) hasStartPrior() bool {
	is := func(p langevin.Prior) bool { return p.Kind == langevin.StartPrior }
	return s.Prior != nil && is(*s.Prior) || slices.ContainsFunc(slices.Collect(maps.Values(s.Priors)), is)
}

// tunedHeadStd is the standard deviation of the initial weights of the last layer if weights before
// the cut are trained. Larger ones send random gradients into these weights: fine-tuned on 752
// photographs, EfficientNet-Lite0 then errs more often, see docs/pretrained.md.
const tunedHeadStd = 0.01

// headNetwork returns the layers after the cut.
func (s Spec) headNetwork(classes int) (layers.Sequential, error) {
	last := layers.Linear{Name: "head", Outputs: classes}
	if cmp.Or(s.Freeze, pretrained.FreezeAll) != pretrained.FreezeAll {
		last.Weight = layers.Normal{Std: tunedHeadStd}
	}
	sizes, isMLP := strings.CutPrefix(s.Head, headMLP)
	switch {
	case s.Head == headLinear:
		return layers.Sequential{last}, nil
	case !isMLP:
		head, err := namedNetwork(s.Head, classes)
		if err != nil && !isNetworkFile(s.Head) {
			return nil, s.badHead()
		}
		return head, err
	}
	var head layers.Sequential
	for i, text := range strings.Split(sizes, "-") {
		width, err := strconv.Atoi(text)
		if err != nil || width < 1 {
			return nil, s.badHead()
		}
		head = append(head, layers.Linear{Name: fmt.Sprint("hidden", i+1), Outputs: width}, layers.ReLU{})
	}
	return append(head, last), nil
}

func (s Spec) badHead() error {
	return invalid("head must be %s, %sWIDTH with a width of at least 1, such as %s64, the name of a network or a network file FILE.yaml, got %q",
		headLinear, headMLP, headMLP, s.Head)
}

// stem returns the part before the cut.
func (s Spec) stem() (*pretrained.Stem, error) {
	stem, err := s.file.Stem(pretrained.Options{Cut: s.Cut, Input: s.Input, Freeze: s.Freeze, Offset: s.startsAt})
	if err != nil {
		return nil, asInvalid(err)
	}
	return stem, nil
}

// ModelFile describes the ONNX file of a run. The run's directory has a copy.
type ModelFile struct {
	// Files are the names of the files in the directory rundir.ModelDir: the model, and the files
	// of its external weights.
	Files []string `json:"files"`
	// Digest is the SHA-256 of their contents, one after the other, in hexadecimal digits.
	Digest string `json:"digest"`
}
