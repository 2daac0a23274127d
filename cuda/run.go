package cuda

import (
	"github.com/pkg/errors"
)

// run runs a number of steps of all chains and waits until they have ended.
func (p *shard) run(steps int) error {
	return p.do(func() error {
		p.readback.valid = false
		if p.synchronous {
			return p.runSynchronously(steps)
		}
		start := p.launchGraphs
		if p.graphs == "off" {
			start = p.launchSteps
		}
		if err := start(steps); err != nil {
			return err
		}
		if err := p.startReadback(); err != nil {
			return err
		}
		err := p.synchronize()
		p.readback.valid = p.readback.bytes > 0 && err == nil
		return errors.Wrap(err, "cuda: a launch of this run (Options.Synchronous or "+GraphsVariable+"=slow names the launch)")
	})
}

// launchGraphs launches steps as CUDA graphs, without waiting.
func (p *shard) launchGraphs(steps int) error {
	if together := p.stepsPerGraph(); together > 1 {
		for ; steps >= together; steps -= together {
			if err := p.replay(&p.multiStepGraph, together); err != nil {
				return err
			}
		}
	}
	for ; steps > 0; steps-- {
		if err := p.replay(&p.stepGraph, 1); err != nil {
			return err
		}
	}
	return nil
}

// launchSteps launches the calls of steps one by one, without waiting.
func (p *shard) launchSteps(steps int) error {
	for range steps {
		if err := p.launchAll(p.step, 0, p.chains); err != nil {
			return err
		}
	}
	return nil
}

// runSynchronously waits after each call, so that an error belongs to that call. Otherwise the
// driver reports an error of a kernel at some later call.
func (p *shard) runSynchronously(steps int) error {
	for range steps {
		for i := range p.step {
			if err := p.launchAndWait(p.step[i:i+1], 0, p.chains); err != nil {
				return err
			}
		}
	}
	return p.synchronize()
}
