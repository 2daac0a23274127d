package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// mostGPUSteps is how many steps a round on a GPU may have: a step takes microseconds.
const mostGPUSteps = 4096

// gpuFlags say what is timed on a GPU.
type gpuFlags struct {
	gpu                      int
	work, steps, samplers    []string
	precisions, peers        []string
	chains, updates, batches []int
	peerDevice               string
	budget, patience         time.Duration
	onlyPredict              bool
}

func gpuCommand(o *options) *cobra.Command {
	var f gpuFlags
	c := &cobra.Command{
		Use:   "gpu",
		Short: "On a GPU: training steps of many chains, updates, convolutions, each launch of a step; PyTorch and JAX beside them",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return f.run(c.Context(), o) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.onlyPredict, "predict", false, "print what the model of an H200 predicts for the steps and updates, without a GPU")
	flags.IntVar(&f.gpu, "gpu", 0, "the GPU's number")
	flags.StringSliceVar(&f.work, "work", []string{"updates", "convolutions", "launches", "steps"}, "what to time, in this order")
	flags.StringSliceVar(&f.steps, "steps", []string{"mnist-64-64-256:100", "mlp-100:500", "mnist-64-64-256:1024"}, "networks with their batch sizes")
	flags.StringSliceVar(&f.samplers, "samplers", []string{"sgld"}, "sgd, sgld, psgld")
	flags.StringSliceVar(&f.precisions, "precisions", []string{"fp32", "tf32", "bf16"}, "of the matrix products")
	flags.StringSliceVar(&f.peers, "peers", []string{"torch", "torch-graph", "torch-compile", "jax"}, "the other sides")
	flags.IntSliceVar(&f.chains, "chains", []int{64, 1, 8}, "numbers of chains")
	flags.IntSliceVar(&f.updates, "updates", []int{1 << 20, 50 << 20}, "parameters that are updated: within the second-level cache, and far beyond it")
	flags.IntSliceVar(&f.batches, "batches", []int{100, 1024}, "batch sizes of the convolutions")
	flags.StringVar(&f.peerDevice, "peer-device", "cuda", "where the peers compute: cuda, or cpu to try them")
	flags.DurationVar(&f.patience, "patience", 90*time.Second, "the most that a peer may take to prepare work, or for a round of it")
	flags.DurationVar(&f.budget, "budget", 8*time.Minute, "the time for all work, each of which has a share: nothing is begun after it")
	return c
}

// gpuRun is a run of the command.
type gpuRun struct {
	gpuFlags
	options  options
	record   *record
	services []*service
	invited  []*service // to the work at hand
	end      time.Time
	deadline time.Time // of the work at hand
	failed   error     // the first comparison's that failed
}

func (f gpuFlags) run(ctx context.Context, o *options) error {
	r := &gpuRun{gpuFlags: f, options: *o, record: newRecord(), end: time.Now().Add(f.budget)}
	if f.onlyPredict {
		return r.predict()
	}
	installed, err := cuda.List("")
	if err != nil {
		return err
	}
	if f.gpu < 0 || f.gpu >= len(installed.GPUs) {
		return errors.Errorf("benchmarks: no GPU %d, there are %d", f.gpu, len(installed.GPUs))
	}
	r.record.Machine.GPU = fmt.Sprintf("%v, CUDA %s", installed.GPUs[f.gpu], installed.Version)
	fmt.Printf("%s; %s\n", r.record.Machine.GPU, r.record.Machine.describe())
	r.precisions = nil
	for _, p := range f.precisions {
		if info := installed.GPUs[f.gpu]; info.Major < 8 && p != string(cuda.FP32) {
			r.record.Left = append(r.record.Left, p+", which needs compute capability 8.0")
			continue
		}
		r.precisions = append(r.precisions, p)
	}
	for _, s := range gpuServices() {
		if slices.Contains(f.peers, s.name) {
			r.services = append(r.services, s)
			defer s.close()
		}
	}
	works := map[string]func(context.Context) error{
		"steps": r.timeSteps, "updates": r.timeUpdates, "convolutions": r.timeConvolutions, "launches": r.timeLaunches,
	}
	for i, name := range f.work {
		work, ok := works[name]
		if !ok {
			return errors.Errorf("benchmarks: no work %q; there are steps, updates, convolutions, launches", name)
		}
		r.deadline = time.Now().Add(share(f.work[i:], time.Until(r.end)))
		r.invited = r.services
		if err := work(ctx); err != nil {
			return errors.Wrap(err, name)
		}
	}
	if len(r.record.Left) > 0 {
		fmt.Printf("left out: %s\n", strings.Join(r.record.Left, "; "))
	}
	return cmp.Or(r.failed, r.record.write(o))
}

// excuse lets the other comparisons go on after one that failed. The command fails in the end.
func (r *gpuRun) excuse(ctx context.Context, comparison string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Printf("%s failed: %v\n", comparison, err)
	r.record.Left = append(r.record.Left, comparison+", which failed")
	r.failed = cmp.Or(r.failed, errors.Wrap(err, comparison))
	return nil
}

// share is the part of the time left that the first of these works may take: an equal share, with
// steps counting three times.
func share(works []string, left time.Duration) time.Duration {
	weight := func(name string) time.Duration {
		if name == "steps" {
			return 3
		}
		return 1
	}
	var all time.Duration
	for _, name := range works {
		all += weight(name)
	}
	return left * weight(works[0]) / all
}

// late reports whether there is no time left for a comparison.
func (r *gpuRun) late(comparison string) bool {
	if time.Now().Before(r.deadline) {
		return false
	}
	r.record.Left = append(r.record.Left, comparison)
	return true
}

func (r *gpuRun) open(precision string) (tensor.Device, error) {
	return cuda.Open(cuda.Options{GPUs: []int{r.gpu}, Precision: cuda.Precision(precision)})
}

// parseTraining reads "mnist-64-64-256:100".
func parseTraining(text, sampler string) (training, error) {
	network, size, _ := strings.Cut(text, ":")
	batch, err := strconv.Atoi(size)
	if err != nil || batch < 1 {
		return training{}, errors.Errorf("benchmarks: step %q, wants a network and a batch size, as mlp-100:500", text)
	}
	return training{network, batch, sampler}, nil
}

// timeSteps begins with the first precision and the peers that are ready soonest. Then it
// alternates between slower peers and further precisions: if the time runs out, only the slow peers
// in the last precisions are left out.
func (r *gpuRun) timeSteps(ctx context.Context) error {
	for wave := range turns + len(r.precisions) - 1 {
		for i, precision := range r.precisions[:min(wave+1, len(r.precisions))] {
			turn := wave - i
			r.invited = nil
			for _, s := range r.services {
				if s.turn == turn && !s.gone {
					r.invited = append(r.invited, s)
				}
			}
			if turn > 0 && len(r.invited) == 0 {
				continue
			}
			if err := r.timeStepsIn(ctx, precision); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *gpuRun) timeStepsIn(ctx context.Context, precision string) error {
	for _, chains := range r.chains {
		for _, step := range r.steps {
			for _, sampler := range r.samplers {
				t, err := parseTraining(step, sampler)
				if err != nil {
					return err
				}
				comparison := fmt.Sprintf("step %s batch %d %s, %d chains, %s", t.network, t.batch, sampler, chains, precision)
				if r.late(comparison + r.beside()) {
					continue
				}
				request := peerRequest{
					Work: "train", Network: t.network, Batch: t.batch, Sampler: sampler, Chains: chains, Precision: precision,
					Rate: rate, Prior: priorDeviation,
				}
				open := func(device tensor.Device) (contestant, error) { return loadPollen(t, device, chains) }
				at := len(r.record.Entries)
				if err := r.compare(ctx, comparison, precision, open, request, float64(chains*t.batch), "images"); err != nil {
					return err
				}
				if err := r.besidePredicted(at, t, chains, precision); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// beside names the peers that are invited.
func (r *gpuRun) beside() string {
	var names []string
	for _, s := range r.invited {
		names = append(names, s.name)
	}
	if names == nil {
		return ""
	}
	return " beside " + strings.Join(names, " and ")
}

// compare times Pollen's work and the peers'. It leaves out work that does not fit into the GPU's
// memory, and peers that fail on the way.
func (r *gpuRun) compare(ctx context.Context, comparison, precision string, open func(tensor.Device) (contestant, error), request peerRequest,
	items float64, unit string,
) (err error) {
	defer func() { err = r.excuse(ctx, comparison, err) }()
	device, err := r.open(precision)
	if err != nil {
		return err
	}
	ours, err := open(device)
	if err != nil {
		err = cmp.Or(err, device.Close())
		var memory *cuda.OutOfMemory
		if errors.As(err, &memory) {
			fmt.Printf("%s is left out: %v\n", comparison, err)
			return nil
		}
		return err
	}
	request.Device = r.peerDevice
	sides := []*side{{name: "pollen", does: ours, most: mostGPUSteps}}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	for _, s := range r.invited {
		if !slices.Contains(s.works, request.Work) {
			continue
		}
		if r.late(comparison + " of " + s.name) {
			continue
		}
		if other, ok := s.begin(r.options, request, min(r.patience, time.Until(r.end)+10*time.Second)); ok {
			sides = append(sides, other)
		} else {
			r.record.Left = append(r.record.Left, comparison+" of "+s.name)
		}
	}
	if err := r.alternate(ctx, &sides); err != nil {
		return err
	}
	r.record.add(comparison, sides, items, unit)
	r.record.printFrom(len(r.record.Entries) - len(sides))
	return r.record.save(r.options.json) // what there is, should the time run out
}

// alternate times the sides, without the peers if one of them ends on the way.
func (r *gpuRun) alternate(ctx context.Context, sides *[]*side) error {
	err := alternate(ctx, *sides, r.options.rounds)
	if _, gone := errors.Cause(err).(ended); !gone {
		return err
	}
	fmt.Printf("  the peers are left out here: %v\n", err)
	for _, s := range r.services {
		s.close()
	}
	*sides = []*side{{name: "pollen", does: (*sides)[0].does, most: mostGPUSteps}}
	return alternate(ctx, *sides, r.options.rounds)
}

// timeUpdates times pSGLD's update beside a copy of memory on the same GPU. The record has its rate
// as a share of the fastest copy's.
func (r *gpuRun) timeUpdates(ctx context.Context) error {
	for _, n := range r.updates {
		comparison := fmt.Sprintf("copy of %d floats", n)
		if r.late(comparison) {
			continue
		}
		at := len(r.record.Entries)
		open := func(device tensor.Device) (contestant, error) { return newGPUCopy(device, 4*n) }
		if err := r.compare(ctx, comparison, "fp32", open, peerRequest{Work: "copy", Parameters: n}, 8*float64(n)/1e9, "GB"); err != nil {
			return err
		}
		const floats = 5 // read theta, v and g, written theta and v
		open = func(device tensor.Device) (contestant, error) { return loadUpdate(device, n) }
		request := peerRequest{Work: "update", Parameters: n}
		updates := len(r.record.Entries)
		if err := r.compare(ctx, fmt.Sprintf("psgld update of %d parameters", n), "fp32", open, request, 4*floats*float64(n)/1e9, "GB"); err != nil {
			return err
		}
		var copied float64 // of whichever side: small copies take as long as it takes to start them
		for _, e := range r.record.Entries[at:updates] {
			copied = max(copied, e.Rate)
		}
		for i := range r.record.Entries[updates:] {
			if e := &r.record.Entries[updates+i]; copied > 0 {
				e.Fraction = e.Rate / copied
			}
		}
	}
	return r.record.save(r.options.json)
}

// updateProgram is a step that is pSGLD's update of n parameters.
func updateProgram(n int) (*graph.Program, error) {
	b := graph.New(tensor.Float32)
	sample(b, langevin.PSGLD{Alpha: psgldAlpha, Lambda: psgldLambda, Gamma: langevin.GammaNone}, b.Parameter("w", nil, n), b.State("gradient", nil, n))
	return b.Compile()
}

func loadUpdate(device tensor.Device, n int) (contestant, error) {
	program, err := updateProgram(n)
	if err != nil {
		return nil, err
	}
	p := &pollen{device: device}
	p.session, err = program.Load(device, graph.LoadOptions{Seed: 1})
	return p, err
}

// gpuCopy copies memory on the GPU: it keeps the memory of a schedule's only chain.
type gpuCopy struct {
	device tensor.Device
	runner tensor.Runner
}

func newGPUCopy(device tensor.Device, bytes int) (contestant, error) {
	s := tensor.Workload{Chains: 1, Keeps: true}
	s.Bytes[tensor.Chain] = bytes
	runner, err := device.Load(s)
	return &gpuCopy{device, runner}, err
}

func (g *gpuCopy) run(steps int) (float64, error) {
	return timed(func() error {
		for range steps {
			if err := g.runner.Keep(); err != nil {
				return err
			}
		}
		return g.runner.Run(0)
	})
}

func (g *gpuCopy) close() error { return cmp.Or(g.runner.Close(), g.device.Close()) }
