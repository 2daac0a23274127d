package export

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The groups of ArviZ's schema.
const (
	posteriorGroup     = "posterior"
	statsGroup         = "sample_stats"
	predictiveGroup    = "posterior_predictive"
	likelihoodGroup    = "log_likelihood"
	observedGroup      = "observed_data"
	chainAxis          = "chain"
	drawAxis           = "draw"
	imageAxis          = "image"
	classAxis          = "class"
	probabilitiesArray = "probabilities"
	labelArray         = "label"
)

// ArviZ writes a run to a new directory, in Zarr groups of ArviZ's schema, which arviz.from_zarr
// and xarray.open_datatree read. It returns remarks about omitted data:
//
//	posterior             each parameter [chain draw ...]
//	sample_stats          step, step_size and, of the steps before the draw, loss, accuracy,
//	                      learning_rate and temperature [chain draw]; the latter four are
//	                      means over the chains of a run, NaN where they were not recorded; of
//	                      samplers on all data also lp, acceptance_rate, accepted, n_steps,
//	                      diverging and energy
//	posterior_predictive  probabilities [chain draw image class], and label [chain draw image], a
//	                      class drawn with these probabilities
//	log_likelihood        label [chain draw image]
//	observed_data         label [image]
//
// The last three groups are about the images, which may be nil; the last two also need labels.
// The attributes of all groups are the settings of the run, its digest and its manifest. Runs
// without draws, which are distilled or have Monte Carlo dropout, are an InvalidError.
func ArviZ(ctx context.Context, run *bayes.Run, images *datasets.Dataset, dir string) (remarks []string, err error) {
	p, err := unpredicted(run)
	if err != nil {
		return nil, err
	}
	if err := arvizRefusal(run, p.passes); err != nil {
		return nil, err
	}
	if images != nil {
		if err := checkNew(dir); err != nil {
			return nil, err
		}
		if p, err = predict(ctx, run, images); err != nil {
			return nil, err
		}
	}
	return writeArviZ(run, p, dir)
}

// arvizRefusal returns an InvalidError if a run, with a number of passes of each sample, has no
// draws.
func arvizRefusal(run *bayes.Run, passes int) error {
	if m := run.Manifest(); m.Teacher != nil {
		return invalid("arviz: %s was distilled from a posterior and has no draws; export its teacher, %s", run.Dir(), m.Spec.Teacher)
	}
	if passes > 1 {
		return invalid("arviz: %s has one set of weights and random dropout masks, but no draws; use another method", run.Dir())
	}
	return nil
}

// writeArviZ writes the groups. p has the predictions of the draws.
func writeArviZ(run *bayes.Run, p *predicted, dir string) (remarks []string, err error) {
	a := &arviz{run: run, draws: p.draws, predicted: p}
	a.arrange()
	err = intoNew(dir, func(dir string) error {
		a.zarr.dir = dir
		return a.write()
	})
	return a.remarks, err
}

// arviz writes the groups of a run.
type arviz struct {
	run       *bayes.Run
	draws     *bayes.Draws
	predicted *predicted
	chains    [][]int // the positions of the draws of each chain, equally many for all
	numbers   []int   // of each chain, in the run that drew it
	zarr      zarr
	remarks   []string
}

// arrange divides the samples by chain. All chains get the number of draws of the shortest.
func (a *arviz) arrange() {
	for i := range a.draws.Len() {
		if chain := a.draws.Chain(i); chain == len(a.chains) {
			a.chains = append(a.chains, nil)
		}
		last := a.draws.Chain(i)
		a.chains[last] = append(a.chains[last], i)
	}
	least := math.MaxInt
	for _, chain := range a.chains {
		least = min(least, len(chain))
	}
	left := 0
	for i, chain := range a.chains {
		left += len(chain) - least
		a.chains[i] = chain[:least]
	}
	if left > 0 {
		a.remarks = append(a.remarks, fmt.Sprintf("chains have different numbers of samples: the last %d of longer ones are left out", left))
	}
}

// shape returns a shape that begins with the chains and draws.
func (a *arviz) shape(rest ...int) []int {
	return append([]int{len(a.chains), len(a.chains[0])}, rest...)
}

func (a *arviz) write() error {
	attributes, err := a.attributes()
	if err != nil {
		return err
	}
	a.zarr.group("", attributes)
	begin := func(group string) {
		a.zarr.group(group, attributes)
		if group != observedGroup {
			a.zarr.coordinates(group, chainAxis, len(a.chains), numbers(len(a.chains)))
			a.zarr.coordinates(group, drawAxis, len(a.chains[0]), numbers(len(a.chains[0])))
		}
	}
	begin(posteriorGroup)
	weights, err := a.posterior()
	if err != nil {
		return err
	}
	begin(statsGroup)
	if err := a.stats(weights); err != nil {
		return err
	}
	if a.predicted.images == nil {
		a.remarks = append(a.remarks, "without images there are no predictions and no likelihoods")
		return a.zarr.close()
	}
	begin(predictiveGroup)
	a.predictions()
	if a.predicted.average.Labels == nil {
		a.remarks = append(a.remarks, "without labels there are no likelihoods")
		return a.zarr.close()
	}
	begin(likelihoodGroup)
	a.likelihoods()
	begin(observedGroup)
	labels := make([]int64, len(a.predicted.average.Labels))
	for i, label := range a.predicted.average.Labels {
		labels[i] = int64(label)
	}
	a.images(observedGroup)
	a.zarr.whole(observedGroup, labelArray, []string{imageAxis}, []int{len(labels)}, labels)
	return a.zarr.close()
}

// attributes describe the run.
func (a *arviz) attributes() (map[string]any, error) {
	m := a.run.Manifest()
	digest, err := a.draws.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return nil, errors.Wrap(err, "export: arviz")
	}
	attributes := map[string]any{
		"inference_library": "pollen", "inference_library_version": m.Revision, "run_digest": digest, "manifest": string(manifest), "data": m.Data.Name,
	}
	var counts []int
	for _, chain := range a.chains {
		counts = append(counts, len(chain))
	}
	settings, err := settingsOf(a.run, counts)
	if err != nil {
		return nil, err
	}
	for name, text := range settings {
		attributes[name] = text
	}
	return attributes, nil
}

// posterior writes the parameters, a chunk for each draw, sets the numbers of the chains, and
// returns the weights of the draws.
func (a *arviz) posterior() (weights []float64, err error) {
	for chain, positions := range a.chains {
		for draw, position := range positions {
			s, err := a.draws.Weights(position)
			if err != nil {
				return nil, err
			}
			weights = append(weights, s.Weight)
			if draw == 0 {
				a.numbers = append(a.numbers, s.Chain)
			}
			for _, p := range s.Parameters {
				axes, chunk := []string{chainAxis, drawAxis}, []int{1, 1}
				for i, extent := range p.Shape {
					axes, chunk = append(axes, fmt.Sprintf("%s_dim_%d", p.Name, i)), append(chunk, extent)
				}
				if chain == 0 && draw == 0 {
					for i, extent := range p.Shape {
						a.zarr.coordinates(posteriorGroup, axes[2+i], extent, numbers(extent))
					}
					a.zarr.array(posteriorGroup, p.Name, "<f4", axes, a.shape(p.Shape...), chunk)
				}
				a.zarr.chunk(posteriorGroup, p.Name, append([]int{chain, draw}, make([]int, len(p.Shape))...), tensor.Bytes(p.Values))
			}
		}
	}
	return weights, nil
}

// stats writes the statistics of draws.
func (a *arviz) stats(weights []float64) error {
	windows := map[string]map[int]rundir.Metrics{} // by directory and step
	var steps []int64
	values := map[string][]float64{}
	first, rated := map[string]int{}, a.run.Manifest().Spec.Schedule != nil // the first chain of each run, by directory
	for chain, positions := range a.chains {
		for _, position := range positions {
			dir := a.draws.Dir(position)
			if windows[dir] == nil {
				m, err := bayes.ReadManifest(dir)
				if err != nil {
					return err
				}
				first[dir] = m.Spec.FirstChain
				if windows[dir], err = readMetrics(dir); err != nil {
					return err
				}
			}
			steps = append(steps, int64(a.draws.Step(position)))
			line, known := windows[dir][a.draws.Step(position)]
			for name, value := range map[string]*float64{
				"loss": &line.Loss, "accuracy": &line.Accuracy, "learning_rate": &line.Rate, "temperature": line.Temperature,
			} {
				// Samplers on all data have no learning rate, but step sizes.
				if !known || value == nil || name == "learning_rate" && !rated {
					nan := math.NaN()
					value = &nan
				}
				values[name] = append(values[name], *value)
			}
			a.drawStats(values, line, a.numbers[chain]-first[dir])
		}
	}
	axes := []string{chainAxis, drawAxis}
	a.zarr.whole(statsGroup, "step", axes, a.shape(), steps)
	if values[stepSizeArray] == nil {
		values[stepSizeArray] = weights
	}
	a.booleans("diverging", values)
	a.booleans("accepted", values)
	for name, v := range values {
		known := func(x float64) bool { return x == x }
		if len(v) == len(steps) && slices.ContainsFunc(v, known) { // recorded for all draws, and not NaN for all
			a.zarr.whole(statsGroup, name, axes, a.shape(), v)
		}
	}
	for _, w := range weights {
		if w != weights[0] {
			a.remarks = append(a.remarks, "ArviZ weights all draws equally; the run weights them by sample_stats/step_size")
			break
		}
	}
	return nil
}

const stepSizeArray = "step_size"

// drawArrays maps the statistics of draws of samplers on all data to their names in ArviZ.
var drawArrays = map[string]string{
	rundir.DrawPotential: "lp", rundir.DrawAcceptance: "acceptance_rate", rundir.DrawStepSize: stepSizeArray,
	rundir.DrawLeapfrogSteps: "n_steps", rundir.DrawDiverged: "diverging", rundir.DrawEnergyError: "energy_error",
	rundir.DrawEnergy: "energy", rundir.DrawAccepted: "accepted",
}

// drawStats adds the statistics of a draw. chain is the number of the chain within its run.
func (a *arviz) drawStats(values map[string][]float64, line rundir.Metrics, chain int) {
	for name, array := range drawArrays {
		all := line.Draws[name]
		if chain >= len(all) {
			continue
		}
		v := all[chain]
		if name == rundir.DrawPotential { // the logarithm of the density, up to a constant
			v /= -line.Requested
		}
		values[array] = append(values[array], v)
	}
}

// booleans writes an array whose values are 0 and 1 as booleans.
func (a *arviz) booleans(array string, values map[string][]float64) {
	of, total := values[array], len(a.chains)*len(a.chains[0])
	delete(values, array)
	if len(of) != total {
		return
	}
	held := make([]bool, total)
	for i, v := range of {
		held[i] = v != 0
	}
	a.zarr.whole(statsGroup, array, []string{chainAxis, drawAxis}, a.shape(), held)
}

// readMetrics returns the journal of metrics of a run, by step.
func readMetrics(dir string) (map[int]rundir.Metrics, error) {
	lines := map[int]rundir.Metrics{}
	_, err := journal.Read(filepath.Join(dir, rundir.MetricsFile), func(object []byte) error {
		var line rundir.Metrics
		err := json.Unmarshal(object, &line)
		lines[line.Step] = line
		return err
	})
	return lines, errors.Wrap(err, "export: metrics")
}

// images writes the coordinates of images: their files, or their numbers.
func (a *arviz) images(group string) {
	data := a.predicted.images
	var values any = numbers(data.Len())
	if data.Files != nil {
		values = data.Files
	}
	a.zarr.coordinates(group, imageAxis, data.Len(), values)
}

// labelStream is the stream of random numbers with which labels are drawn. Runs have their own
// streams from 0 up, and random.OrderStream-1 and -2.
const labelStream = random.OrderStream - 3

// predictions writes the probabilities of images, a chunk for each draw, and labels drawn with
// them, which ArviZ's plots compare with the observed labels.
func (a *arviz) predictions() {
	_, n, k := a.predicted.size()
	a.images(predictiveGroup)
	a.zarr.coordinates(predictiveGroup, classAxis, k, a.run.Manifest().Data.ClassNames)
	a.zarr.array(predictiveGroup, probabilitiesArray, "<f4", []string{chainAxis, drawAxis, imageAxis, classAxis}, a.shape(n, k), []int{1, 1, n, k})
	var labels []int64
	at := random.Address{Seed: a.run.Manifest().Spec.Seed, Stream: labelStream}
	uniforms := make([]float32, n)
	a.eachPrediction(func(chain, draw int, probabilities []float32) {
		a.zarr.chunk(predictiveGroup, probabilitiesArray, []int{chain, draw, 0, 0}, tensor.Bytes(probabilities))
		at.Chain, at.Step = uint32(chain), uint64(draw)
		random.Uniforms(uniforms, 0, at)
		for i, u := range uniforms {
			labels = append(labels, drawnLabel(probabilities[i*k:(i+1)*k], u))
		}
	})
	a.zarr.whole(predictiveGroup, labelArray, []string{chainAxis, drawAxis, imageAxis}, a.shape(n), labels)
}

// drawnLabel returns the first class at which the sum of the probabilities reaches u, which is in
// (0, 1]. Rounding may keep the sum of all below u.
func drawnLabel(probabilities []float32, u float32) int64 {
	sum := float32(0)
	for class, p := range probabilities {
		if sum += p; p > 0 && u <= sum {
			return int64(class)
		}
	}
	return int64(slices.Index(probabilities, slices.Max(probabilities)))
}

// likelihoods writes the log-likelihoods of labels.
func (a *arviz) likelihoods() {
	_, n, k := a.predicted.size()
	a.images(likelihoodGroup)
	var values []float64
	a.eachPrediction(func(_, _ int, probabilities []float32) {
		for i, label := range a.predicted.average.Labels {
			values = append(values, logarithm(probabilities[i*k+int(label)]))
		}
	})
	a.zarr.whole(likelihoodGroup, labelArray, []string{chainAxis, drawAxis, imageAxis}, a.shape(n), values)
}

func (a *arviz) eachPrediction(use func(chain, draw int, probabilities []float32)) {
	_, n, k := a.predicted.size()
	for chain, positions := range a.chains {
		for draw, position := range positions {
			use(chain, draw, a.predicted.probabilities[position*n*k:(position+1)*n*k])
		}
	}
}
