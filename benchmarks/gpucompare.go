package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
)

// exitLost is the exit code after the GPU was lost to this process, or did not answer: with
// --resume another process can continue.
const exitLost = 3

// lost is the error after which the process cannot use the GPU again.
type lost struct{ error }

// Unwrap returns the GPU's error.
func (l lost) Unwrap() error { return l.error }

// exit ends the process; tests replace it.
var exit = os.Exit

// compare times Pollen's work and the peers', each peer in turns with Pollen. Every side is in the
// record on disk as soon as it has been timed. A side that fails, or does not fit into the GPU's
// memory, is left out, and the others are timed.
func (r *gpuRun) compare(ctx context.Context, comparison, precision string, open func(tensor.Device) (contestant, error), request peerRequest,
	items float64, unit string,
) (err error) {
	var missing []*service
	for _, s := range r.invited {
		if slices.Contains(s.works, request.Work) && !r.known(comparison, s.name) {
			missing = append(missing, s)
		}
	}
	if r.known(comparison, "pollen") && len(missing) == 0 {
		return nil
	}
	request.Device, request.Precision = r.peerDevice, cmp.Or(request.Precision, precision)
	var own *side
	defer func() {
		if own != nil {
			err = cmp.Or(err, r.failure(ctx, comparison, own.name, own.does.close()))
		}
	}()
	if !r.record.hasFailed(comparison, "pollen") {
		if own, err = r.timeOwn(ctx, "pollen", comparison, precision, open, items, unit); err != nil {
			return err
		}
	}
	for _, s := range missing {
		if r.late(comparison + " of " + s.name) {
			continue
		}
		if err := r.timePeer(ctx, s, own, comparison, request, items, unit); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether a side was timed or has failed.
func (r *gpuRun) known(comparison, side string) bool {
	return r.record.entry(comparison, side) != nil || r.record.hasFailed(comparison, side)
}

// timeOwn loads Pollen's side and times it unless the record has it. The side is nil if it failed.
func (r *gpuRun) timeOwn(ctx context.Context, name, comparison, precision string, open func(tensor.Device) (contestant, error),
	items float64, unit string,
) (*side, error) {
	done, err := r.watch(comparison, name, r.patience)
	if err != nil {
		return nil, err
	}
	defer done()
	ours, err := r.openOwn(precision, open)
	if err != nil {
		return nil, r.failure(ctx, comparison, name, err)
	}
	own := &side{name: name, does: ours, limit: maxGPUSteps}
	if r.record.entry(comparison, name) != nil {
		return own, nil
	}
	if err := alternate(ctx, []*side{own}, r.options.rounds); err != nil {
		return nil, r.failure(ctx, comparison, name, cmp.Or(err, ours.close()))
	}
	r.record.put(comparison, own, items, unit)
	r.record.printFrom(len(r.record.Entries) - 1)
	return own, r.record.save(r.options.json)
}

func (r *gpuRun) openOwn(precision string, open func(tensor.Device) (contestant, error)) (contestant, error) {
	device, err := r.open(precision)
	if err != nil {
		return nil, err
	}
	ours, err := open(device)
	if err != nil {
		return nil, cmp.Or(err, device.Close())
	}
	return ours, nil
}

// timePeer times a peer in turns with Pollen's side, unless own is nil. Pollen's figures are then
// over all its rounds so far.
func (r *gpuRun) timePeer(ctx context.Context, s *service, own *side, comparison string, request peerRequest, items float64, unit string) error {
	done, err := r.watch(comparison, s.name, 4*r.patience)
	if err != nil {
		return err
	}
	defer done()
	other, err := s.begin(r.options, request, min(r.patience, time.Until(r.end)+10*time.Second))
	if err != nil {
		return r.peerFailure(s, comparison, err)
	}
	sides := []*side{other}
	if own != nil {
		sides = []*side{own, other}
	}
	if err := alternate(ctx, sides, r.options.rounds); err != nil {
		if failed := s.peer.failed; failed != nil && ctx.Err() == nil {
			return r.peerFailure(s, comparison, failed)
		}
		return r.failure(ctx, comparison, "pollen", err)
	}
	e := r.record.put(comparison, other, items, unit)
	shown := []entry{*e}
	if own != nil {
		ours := r.record.put(comparison, own, items, unit) // before e in the record, so e stays valid
		e.Ratio = e.Seconds.Median / ours.Seconds.Median
		shown = []entry{*ours, *e}
	}
	printEntries(shown)
	return r.record.save(r.options.json)
}

// peerFailure records that a peer did not do a piece of work. A peer that is not installed is left
// out of everything.
func (r *gpuRun) peerFailure(s *service, comparison string, err error) error {
	if _, missing := errors.Cause(err).(absent); missing {
		fmt.Printf("  %s is left out: %v\n", s.name, err)
		r.record.Left = append(r.record.Left, s.name+": "+err.Error())
		s.gone = true
		s.close()
		return r.record.save(r.options.json)
	}
	fmt.Printf("  %s is left out here: %v\n", s.name, err)
	f := failure{Case: comparison, Side: s.name, Error: err.Error()}
	if _, gone := errors.Cause(err).(ended); gone && s.peer != nil {
		s.peer.close() // after this, all its output has been read; the next work starts a new process
		f.Stderr = s.peer.lastLines()
		s.peer = nil
	} else if s.peer != nil {
		f.Stderr = s.peer.lastLines()
	}
	r.record.fail(f)
	return r.record.save(r.options.json)
}

// failure records an error of Pollen's side and returns nil, so that other comparisons continue,
// unless the command was interrupted or the GPU is lost.
func (r *gpuRun) failure(ctx context.Context, comparison, name string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Printf("%s of %s failed: %v\n", comparison, name, err)
	r.record.fail(failure{Case: comparison, Side: name, Error: err.Error()})
	var memory *cuda.OutOfMemory
	if !errors.As(err, &memory) { // a limit, not a fault
		r.failed = cmp.Or(r.failed, errors.Wrap(err, comparison))
	}
	if cuda.IsLost(err) {
		r.record.Begun = nil
		return cmp.Or(r.record.save(r.options.json), error(lost{errors.Wrap(err, comparison)}))
	}
	return r.record.save(r.options.json)
}

// watch records on disk which side is about to be timed. If the side does not end in time, the
// process exits, since nothing can interrupt a GPU's work.
func (r *gpuRun) watch(comparison, name string, limit time.Duration) (done func(), err error) {
	r.record.Begun = &failure{Case: comparison, Side: name}
	if err := r.record.save(r.options.json); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(limit, func() {
		fmt.Fprintf(os.Stderr, "benchmarks: %s of %s did not end within %v; --resume continues without it\n", comparison, name, limit)
		for _, s := range r.services {
			if s.peer != nil {
				s.peer.kill()
			}
		}
		exit(exitLost) // the record on disk has what was begun
	})
	return func() {
		timer.Stop()
		r.record.Begun = nil
		if err := r.record.save(r.options.json); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}, nil
}

// variables are the environment variables of Pollen's variants, by name.
var variables = map[string]string{
	"late": cuda.PDLVariable + "=off", "line": cuda.OrderVariable + "=off", "nowgmma": cuda.WGMMAVariable + "=off",
}

// variantOf returns the environment of a variant, such as "late" or "late+line".
func variantOf(name string) (environment map[string]string, err error) {
	environment = map[string]string{}
	if name == "default" {
		return environment, nil
	}
	for _, one := range strings.Split(name, "+") {
		variable, value, ok := strings.Cut(cmp.Or(variables[one], one), "=")
		if !ok {
			return nil, errors.Errorf("benchmarks: a variant must be default, late, line, nowgmma or VARIABLE=VALUE, got %q", one)
		}
		environment[variable] = value
	}
	return environment, nil
}

// timeVariants times the other variants of a step, one at a time: several may not fit into the
// GPU's memory.
func (r *gpuRun) timeVariants(ctx context.Context, t training, chains int, precision string) error {
	for _, variant := range r.variants {
		comparison, name := t.comparison(chains, precision), "pollen ("+variant+")"
		if variant == "default" || r.known(comparison, name) || variant == "nowgmma" && precision != string(cuda.BF16) || r.late(comparison+" of "+name) {
			continue
		}
		if err := r.timeVariant(ctx, t, chains, precision, variant, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *gpuRun) timeVariant(ctx context.Context, t training, chains int, precision, variant, name string) error {
	environment, err := variantOf(variant)
	if err != nil {
		return err
	}
	for variable, value := range environment {
		before, set := os.LookupEnv(variable)
		if err := os.Setenv(variable, value); err != nil {
			return errors.Wrap(err, "benchmarks: variant")
		}
		defer func() {
			if set {
				os.Setenv(variable, before)
			} else {
				os.Unsetenv(variable)
			}
		}()
	}
	comparison := t.comparison(chains, precision)
	open := func(device tensor.Device) (contestant, error) { return loadPollen(t, device, chains) }
	own, err := r.timeOwn(ctx, name, comparison, precision, open, float64(chains*t.batch), "images")
	if own == nil || err != nil {
		return err
	}
	if plain := r.record.entry(comparison, "pollen"); plain != nil {
		e := r.record.entry(comparison, name)
		e.Ratio = e.Seconds.Median / plain.Seconds.Median
	}
	return cmp.Or(r.failure(ctx, comparison, name, own.does.close()), r.record.save(r.options.json))
}
