package export

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/onnx"
)

// family is a kind of method, by what its predictions average.
type family int

// The families.
const (
	sampler     family = iota // states of Markov chains
	optimizer                 // solutions of an optimizer
	ensemble                  // independent solutions of an optimizer under the prior
	dropout                   // passes with random masks
	swag                      // samples of a Gaussian
	laplace                   // samples of a Gaussian, of the last layer's weights only
	variational               // samples of a Gaussian
	distilled                 // one network
)

// familyOf returns the family of a run's method. Of methods that callers registered, samplers have
// a temperature and optimizers none.
func familyOf(s bayes.Spec) family {
	switch s.Method.(type) {
	case bayes.Ensemble:
		return ensemble
	case bayes.Dropout:
		return dropout
	case bayes.SWAG:
		return swag
	case bayes.LaplaceApproximation:
		return laplace
	case bayes.BayesByBackprop:
		return variational
	case bayes.Distillation:
		return distilled
	}
	if s.Temperature == nil {
		return optimizer
	}
	return sampler
}

// description says in a paragraph what kind of network the run is.
func (c *card) description(d *diagnostics.Report) string {
	method, n := markdown(bayes.MethodName(c.m.Spec.Method)), c.test.draws.Len()
	const bayesian = "A Bayesian neural network that classifies images, approximated by Pollen: "
	switch familyOf(c.m.Spec) {
	case optimizer:
		if n == 1 {
			return fmt.Sprintf("A neural network that classifies images: one solution that the optimizer %s of Pollen found. It is not Bayesian: "+
				"its weights have no uncertainty, and the mutual information of its predictions is 0.", method)
		}
		return fmt.Sprintf("An ensemble of neural networks that classifies images: the average of %d solutions that the optimizer %s of Pollen found. "+
			"They are not samples of a posterior.", n, method)
	case ensemble:
		return fmt.Sprintf("A deep ensemble that classifies images: the average of %d networks, which Pollen trained independently of each other. "+
			"They are solutions, not samples of a posterior.", n)
	case dropout:
		return fmt.Sprintf("%sMonte Carlo dropout. Predictions average %d passes of %s, each of which drops other inputs of linear layers at random.",
			bayesian, c.test.passes*n, counted(n, "trained network"))
	case swag:
		return fmt.Sprintf("%sthe average of %d samples of a Gaussian, which SWAG fitted to %s on the course of an optimizer.", bayesian, n, c.weights())
	case laplace:
		return fmt.Sprintf("%sthe average of %d samples of the last layer's weights, by a Laplace approximation. The other weights have no uncertainty.",
			bayesian, n)
	case variational:
		return fmt.Sprintf("%sthe average of %d samples of a Gaussian with independent weights, by variational inference.", bayesian, n)
	case distilled:
		return c.distilled()
	}
	return c.sampled(d)
}

// distilled describes a distilled run.
func (c *card) distilled() string {
	t := c.m.Teacher
	from, samples := "a Bayesian one", "samples"
	if m, err := bayes.ParseMethod(t.Method); err == nil {
		switch familyOf(bayes.Spec{Method: m, Temperature: new(1.0)}) {
		case ensemble:
			from, samples = "a deep ensemble", "networks"
		case dropout:
			samples = "passes"
		}
	}
	student, predicts := "A neural network that classifies images", "it predicts"
	if n := c.test.draws.Len(); n > 1 {
		student, predicts = fmt.Sprintf("%d neural networks that classify images", n), "their average predicts"
	}
	return fmt.Sprintf("%s, distilled by Pollen from %s (%s by %s): %s what the average of %d %s does, as closely as the section on fidelity says.",
		student, from, markdown(t.Network), markdown(t.Method), predicts, t.Samples, samples)
}

// sampled describes a run of a sampler by the verdict on its chains.
func (c *card) sampled(d *diagnostics.Report) string {
	method, n, chains := markdown(bayes.MethodName(c.m.Spec.Method)), c.test.draws.Len(), len(perChain(c.test.draws))
	t, inChains := c.m.Spec.NoiseTemperature(), counted(chains, "chain")
	average := fmt.Sprintf("the average of %d states of %s of %s, drawn by Pollen", n, inChains, method)
	posterior := "the posterior of " + c.weights()
	if t != 1 {
		posterior += fmt.Sprintf(" at temperature %g", t)
	}
	var v diagnostics.Verdict
	if d != nil {
		v = d.Verdict(t)
	}
	switch {
	case t == 0:
		return fmt.Sprintf("A neural network that classifies images: %s at temperature 0, at which chains do not sample a posterior.", average)
	case v.InEquilibrium:
		return fmt.Sprintf("A Bayesian neural network that classifies images: the average of %d samples of %s, drawn by Pollen in %s of %s.",
			n, posterior, inChains, method)
	case v.Text == "":
		return fmt.Sprintf("A Bayesian neural network that classifies images: %s. It was not measured whether they are samples of %s.", average, posterior)
	case v.AtTemperature:
		return fmt.Sprintf("A Bayesian neural network that classifies images: %s. They were not shown to represent %s: "+
			"each chain samples the surroundings of its own solution.", average, posterior)
	}
	return fmt.Sprintf("A Bayesian neural network that classifies images: %s. The chains are not in equilibrium, "+
		"so their average only approximates the average over %s.", average, posterior)
}

// weights names the weights that are not frozen.
func (c *card) weights() string {
	if c.m.Spec.Frozen() {
		return "the weights of its head"
	}
	return "its weights"
}

// pretrained says which network of an ONNX file the run continues, and which of its weights are
// frozen; "" for other networks.
func (c *card) pretrained() (string, error) {
	model := c.m.Model
	if model == nil || len(model.Files) == 0 {
		return "", nil
	}
	file, err := onnx.Open(filepath.Join(c.run.Dir(), rundir.ModelDir, filepath.FromSlash(model.Files[0])))
	if err != nil {
		return "", err
	}
	network, err := file.Network(onnx.Options{Output: c.m.Spec.Cut})
	if err != nil {
		return "", err
	}
	did := "sampled"
	if f := familyOf(c.m.Spec); f == optimizer || f == ensemble || f == dropout || f == laplace {
		did = "trained"
	}
	text := fmt.Sprintf("It begins with a pretrained network, the file `%s` (SHA-256 `%s`) up to its value `%s`, with %d weights. ",
		model.Files[0], model.Digest, c.m.Spec.Cut, network.WeightCount())
	head := fmt.Sprintf("the head (%s)", markdown(c.m.Spec.Head))
	switch {
	case c.m.Spec.Frozen():
		return text + fmt.Sprintf("All of these are frozen: only the %d weights of %s were %s.", c.m.Parameters, head, did), nil
	case c.m.Spec.Freeze == "none":
		return text + fmt.Sprintf("None of these are frozen: %d weights, with those of %s, were %s.", c.m.Parameters, head, did), nil
	}
	return text + fmt.Sprintf("Of these, `%s` are frozen: the others and those of %s, %d in total, were %s.",
		c.m.Spec.Freeze, head, c.m.Parameters, did), nil
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// perChain returns the number of samples of each chain.
func perChain(draws *bayes.Draws) (counts []int) {
	for i := range draws.Len() {
		for draws.Chain(i) >= len(counts) {
			counts = append(counts, 0)
		}
		counts[draws.Chain(i)]++
	}
	return counts
}

// samplesSetting is the name of the setting of Spec.Samples.
const samplesSetting = "samples"

// settingsOf returns the settings of a run. A gathered run has the seeds of all parts. samples is
// the number of samples that each chain has, of which Spec.Samples is only a minimum.
func settingsOf(run *bayes.Run, counts []int) (map[string]string, error) {
	settings := run.Manifest().Spec.Texts()
	if settings[samplesSetting] != "" && familyOf(run.Manifest().Spec) != dropout {
		settings[samplesSetting] = strconv.Itoa(slices.Min(counts))
		if most := slices.Max(counts); most > slices.Min(counts) {
			settings[samplesSetting] += fmt.Sprintf(" to %d", most)
		}
	}
	parts, err := run.Parts()
	if err != nil || parts == nil {
		return settings, err
	}
	seeds := map[uint64]bool{}
	var texts []string
	for _, part := range parts {
		if seed := part.Manifest().Spec.Seed; !seeds[seed] {
			seeds[seed], texts = true, append(texts, strconv.FormatUint(seed, 10))
		}
	}
	settings["seed"] = strings.Join(texts, ", ")
	return settings, nil
}
