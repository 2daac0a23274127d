package bayes

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/samples"
)

// The values of Spec.Freeze that are not names, and the default of Spec.Head.
const (
	freezeAll  = "all"
	freezeNone = "none"
	headLinear = "linear"
	headMLP    = "mlp:"
)

// Frozen reports whether all weights of an ONNX file are frozen, so that features are computed
// once. The specification must be resolved.
func (s Spec) Frozen() bool { return s.isPretrained() && s.Freeze == freezeAll }

// copyModel copies the model into the directory of a run, so that the run can be moved, and does
// not change if the original file does.
func (s Spec) copyModel(dir string) (*ModelFile, error) {
	if !s.isPretrained() {
		return nil, nil
	}
	if _, err := s.file.load(); err != nil {
		return nil, err
	}
	m := &ModelFile{Digest: s.file.sum}
	for _, part := range s.file.files {
		path := filepath.Join(dir, rundir.ModelDir, filepath.FromSlash(part.name))
		if err := file.MakeDir(filepath.Dir(path)); err != nil {
			return nil, errors.Wrap(err, "pollen: model")
		}
		if err := file.Write(path, part.content); err != nil {
			return nil, errors.Wrap(err, "pollen: model")
		}
		m.Files = append(m.Files, filepath.ToSlash(part.name))
	}
	return m, nil
}

// checkPretrained refuses settings that apply only to ONNX files, and values that cannot be read.
func (s Spec) checkPretrained() error {
	for name, text := range map[string]string{"cut": s.Cut, "head": s.Head, "freeze": s.Freeze, "input": s.Input} {
		if text != "" && !s.isPretrained() {
			return invalid("%s applies to networks of ONNX files, such as model backbone.onnx, not to %s", name, s.NetworkName())
		}
	}
	if s.isPretrained() && s.Prior != nil && s.Prior.Kind == langevin.StartPrior && cmp.Or(s.Freeze, freezeAll) == freezeAll {
		return invalid("the prior start:S applies to weights of %s that are not frozen, and all are frozen: set freeze to %s or to names of weights",
			s.Network, freezeNone)
	}
	if s.Input != "" {
		if _, err := parseInput(s.Input); err != nil {
			return err
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
	model, err := s.file.load()
	if err != nil {
		return s, &InvalidError{err}
	}
	if s.Cut != "" {
		if s.Cut, err = model.Value(s.Cut); err != nil {
			return s, invalid("cut: model %s: %v", s.Network, err)
		}
	} else if s.Cut, err = model.Features(); err != nil {
		return s, invalid("model %s: %v; give the value to cut at with cut", s.Network, err)
	}
	if s.Input == "" {
		s.Input = inputOf(model.Metadata)
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
	return stem.network.Starts(), nil
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
	return stem.network.FanIns(), nil
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

// headNetwork returns the layers after the cut.
func (s Spec) headNetwork(classes int) (layers.Sequential, error) {
	sizes, isMLP := strings.CutPrefix(s.Head, headMLP)
	switch {
	case s.Head == headLinear:
		return layers.Sequential{layers.Linear{Name: "head", Outputs: classes}}, nil
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
	return append(head, layers.Linear{Name: "head", Outputs: classes}), nil
}

func (s Spec) badHead() error {
	return invalid("head must be %s, %sWIDTH with a width of at least 1, such as %s64, the name of a network or a network file FILE.yaml, got %q",
		headLinear, headMLP, headMLP, s.Head)
}

// stem returns the part before the cut. The network is read twice: freeze chooses weights by name,
// and the names are known only after reading it once with no weight frozen.
func (s Spec) stem() (*stem, error) {
	model, err := s.file.load()
	if err != nil {
		return nil, err
	}
	s, err = s.withModel()
	if err != nil {
		return nil, err
	}
	format, err := parseInput(s.Input)
	if err != nil {
		return nil, err
	}
	network, err := model.Network(onnx.Options{Output: s.Cut})
	if err != nil {
		return nil, &InvalidError{errors.WithMessagef(err, "pollen: model %s", s.Network)}
	}
	frozen, err := s.frozenWeights(network.Weights())
	if err != nil {
		return nil, err
	}
	if network, err = model.Network(onnx.Options{Output: s.Cut, Frozen: frozen, Offset: s.startsAt}); err != nil {
		return nil, err
	}
	_, _, _, last := inputShape(model)
	output := s.Cut
	if len(model.Outputs) > 0 {
		output = model.Outputs[0].Name
	}
	return &stem{network: network, name: s.Network, cut: s.Cut, output: output, format: format, last: last}, nil
}

// frozenWeights returns a function that reports whether a weight is frozen. A name freezes the
// weight of that name and all weights below it, as in features.0 for features.0.weight.
func (s Spec) frozenWeights(weights []string) (func(name string) bool, error) {
	switch s.Freeze {
	case freezeAll, "":
		return func(string) bool { return true }, nil
	case freezeNone:
		return func(string) bool { return false }, nil
	}
	names := strings.Split(s.Freeze, ",")
	is := func(weight, name string) bool {
		return weight == name || strings.HasPrefix(weight, name+".") || strings.HasPrefix(weight, name+"/")
	}
	for _, name := range names {
		if !slices.ContainsFunc(weights, func(weight string) bool { return is(weight, name) }) {
			few := weights[:min(len(weights), 8)]
			advice := ""
			if slices.ContainsFunc(weights, func(weight string) bool { return strings.HasPrefix(weight, "onnx::") }) {
				advice = "; the exporter made up such names: torch.onnx.export with dynamo=True keeps those of the network"
			}
			return nil, invalid("freeze must be %s, %s or names of weights of %s, separated by commas, got %q; it has %d weights: %s ...%s",
				freezeAll, freezeNone, s.Network, name, len(weights), strings.Join(few, ", "), advice)
		}
	}
	return func(weight string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return is(weight, name) })
	}, nil
}
