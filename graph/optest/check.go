package optest

import (
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// check runs all comparisons of a row on a device.
func (c *Case) check(device tensor.Device) error {
	if err := c.validate(); err != nil {
		return err
	}
	host := tensor.NewHost(1)
	defer host.Close()
	want, err := c.expect(host)
	if err != nil {
		return err
	}
	dtypes := []tensor.DType{tensor.Float32, tensor.Float64}
	if c.Speed {
		dtypes = dtypes[:1]
	}
	for _, dtype := range dtypes {
		s, err := c.compile(dtype, true, !c.NoGradient)
		if err != nil {
			return err
		}
		if err := s.check(device, host, want); err != nil {
			return errors.Wrap(err, dtype.String())
		}
	}
	return c.checkKernel()
}

// expect returns the wanted values of a row: outputs and updates by the naive loop, and gradients
// by the host in float64, after these have been compared with finite differences or the row's
// formula.
func (c *Case) expect(host tensor.Device) (trace, error) {
	s, err := c.compile(tensor.Float64, true, !c.NoGradient)
	if err != nil {
		return nil, err
	}
	traces, err := s.run(guard{host}, 0, 1, false)
	if err != nil {
		return nil, errors.Wrap(err, "float64 on the host")
	}
	want := s.naive(traces[0])
	if err := s.close(traces[0], want); err != nil {
		return nil, errors.Wrap(err, "float64 on the host")
	}
	if c.NoGradient || c.Gradient != nil || c.Speed {
		return want, nil
	}
	return want, c.checkFiniteDifferences(host, s, want[0])
}

// naive returns the host's trace with the values of the row's loops instead; gradients without a
// loop remain the host's.
func (s *compiledCase) naive(computed trace) trace {
	values := s.c.values(0)
	var want trace
	for step := range computed {
		var gradients [][]float64
		if s.c.Gradient != nil {
			gradients = s.c.Gradient(values, s.cotangent(0))
		}
		y := s.c.Naive(values)
		row := append([][]float64(nil), computed[step]...)
		for i, v := range s.variables {
			switch {
			case v.role == output:
				row[i] = y
			case v.role == update:
				row[i] = append([]float64(nil), values[v.input]...)
			case gradients != nil:
				row[i], gradients = gradients[0], gradients[1:]
			}
		}
		want = append(want, row)
		s.c.countStep(values)
	}
	return want
}

// countStep increments the header's step, as the end of a step does.
func (c *Case) countStep(values [][]float64) {
	for i, in := range c.Inputs {
		if in.isHeader() {
			values[i][graph.HeaderStep]++
		}
	}
}

// check compares the values of a device with the wanted ones, with the host's, and with its own in
// other runs.
func (s *compiledCase) check(device, host tensor.Device, want trace) error {
	guarded, err := s.run(guard{device}, 0, 1, false)
	if err != nil {
		return errors.Wrap(err, "between sentinels")
	}
	if err := s.close(guarded[0], want); err != nil {
		return err
	}
	many, err := s.run(device, 0, 3, true)
	if err != nil {
		return errors.Wrap(err, "three chains")
	}
	if err := s.sameBits(many[0], guarded[0]); err != nil {
		return errors.Wrap(err, "chain 0 of three against chain 0 of one, between sentinels")
	}
	alone, err := s.run(device, 2, 1, false)
	if err != nil {
		return errors.Wrap(err, "only chain 2")
	}
	if err := s.sameBits(many[2], alone[0]); err != nil {
		return errors.Wrap(err, "chain 2 of three against only chain 2")
	}
	if _, ok := device.(*tensor.Host); ok {
		return s.checkHost(device, many[0])
	}
	reference, err := s.run(host, 0, 1, false)
	if err != nil {
		return errors.Wrap(err, "the host")
	}
	return errors.Wrap(s.closeWithin(2, many[0], reference[0]), "against the host") // either may be off by the tolerance
}

// close compares a trace with the wanted values.
func (s *compiledCase) close(got, want trace) error { return s.closeWithin(1, got, want) }

func (s *compiledCase) closeWithin(tolerances float64, got, want trace) error {
	for step := range want {
		for i, v := range s.variables {
			tol := s.c.tol(s.dtype, s.terms(v), want[step][i])
			tol.Abs, tol.Rel = tolerances*tol.Abs, tolerances*tol.Rel
			if err := Close(got[step][i], want[step][i], tol); err != nil {
				return errors.Wrapf(s.annotate(err, v), "step %d, %s", step, v.title)
			}
		}
	}
	return nil
}

// terms returns the number of terms in the sum behind an element of a variable. If an input has n
// times fewer elements than the output, each occurs in n times more sums, and its gradient has n
// times more terms.
func (s *compiledCase) terms(v variable) int {
	if v.role != gradient {
		return s.c.Terms
	}
	return max(s.c.Terms, s.c.Terms*s.shape.Elements()/v.shape.Elements())
}

// checkHost checks the guarantees of the host: equal bits with any number of threads, and no
// allocation in a step.
func (s *compiledCase) checkHost(device tensor.Device, want trace) error {
	for _, threads := range []int{1, 3} {
		host := tensor.NewHost(threads)
		got, err := s.run(host, 0, 1, false)
		host.Close()
		if err == nil {
			err = s.sameBits(got[0], want)
		}
		if err != nil {
			return errors.Wrapf(err, "%d threads against %s", threads, device.Name())
		}
	}
	session, err := s.program.Load(device, graph.LoadOptions{Seed: seed, Chains: 3})
	if err != nil {
		return err
	}
	defer session.Close()
	var failed error
	allocations := testing.AllocsPerRun(2, func() {
		if err := session.Run(1); err != nil {
			failed = err
		}
	})
	if failed == nil && allocations > 0 {
		failed = errors.Errorf("optest: a step must not allocate, got %v allocations", allocations)
	}
	return failed
}

// checkKernel compares the launches of the row's output with Kernel.
func (c *Case) checkKernel() error {
	if c.Kernel == "" {
		return nil
	}
	s, err := c.compile(tensor.Float32, true, false)
	if err != nil {
		return err
	}
	var names []string
	for _, launch := range s.launches() {
		names = append(names, launch.Kernel)
	}
	if want := c.Kernel + "_" + tensor.Float32.Suffix(); len(names) != 1 || names[0] != want {
		return errors.Errorf("optest: the row must compile to the single launch %q, got %q", want, names)
	}
	return nil
}
