package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// schedule is a training step's launches.
func (t training) schedule(chains int) (tensor.Workload, error) {
	program, err := t.compile()
	if err != nil {
		return tensor.Workload{}, err
	}
	return scheduleOf(program, chains)
}

// lone is one launch of a schedule, over and over, in memory that is zeroed or filled.
type lone struct {
	device tensor.Device // to close, or nil
	runner tensor.Runner
}

func newLone(device tensor.Device, s tensor.Workload, launch int) (*lone, error) {
	s.Launches = s.Launches[launch : launch+1]
	runner, err := device.Load(s)
	return &lone{runner: runner}, err
}

// fill writes normals to what the launch reads, as the peers do: zeros take a GPU less power, and
// may be multiplied faster.
func (l *lone) fill(launch *tensor.Launch) error {
	for i, a := range launch.Arguments {
		if a.Buffer == nil || a.Access&tensor.Read == 0 || a.Buffer.DType != tensor.Float32 {
			continue
		}
		values := make([]float32, a.Buffer.Elements)
		random.Normals(values, 0, random.Address{Stream: uint16(i)})
		bytes, err := binary.Append(nil, binary.NativeEndian, values)
		if err == nil {
			err = l.runner.Write(a.Buffer, 0, 0, bytes)
		}
		if err != nil {
			return errors.Wrapf(err, "operand %d of %s", i, launch.Kernel)
		}
	}
	return nil
}

func (l *lone) run(steps int) (float64, error) {
	return timed(func() error { return l.runner.Run(steps) })
}

func (l *lone) close() error {
	err := l.runner.Close()
	if l.device != nil {
		err = cmp.Or(err, l.device.Close())
	}
	return err
}

// The convolution that does most of mnist-64-64-256's work: 64 to 64 channels, 5x5, on 14x14.
const (
	wideFilter = 64 * 64 * 5 * 5
	wideWork   = 2 * wideFilter * 14 * 14 // operations for an example
)

// directions are a convolution's kernels, as the peers name them.
var directions = []struct{ kernel, name string }{{"conv2d_bwd_input", "input"}, {"conv2d_bwd_filter", "filter"}, {"conv2d_", "forward"}}

// wideDirection is the wide convolution's direction that a launch computes, "" for other launches.
func wideDirection(l *tensor.Launch) string {
	for _, a := range l.Arguments {
		if a.Buffer == nil || a.Buffer.Elements != wideFilter {
			continue
		}
		for _, d := range directions {
			if strings.HasPrefix(l.Kernel, d.kernel) {
				return d.name
			}
		}
	}
	return ""
}

// timeConvolutions times the wide convolution in its three directions beside cuDNN's best.
func (r *gpuRun) timeConvolutions(ctx context.Context) error {
	for _, batch := range r.batches {
		s, err := training{"mnist-64-64-256", batch, "sgd"}.schedule(1)
		if err != nil {
			return err
		}
		for _, precision := range r.precisions {
			for i := range s.Launches {
				direction := wideDirection(&s.Launches[i])
				if direction == "" {
					continue
				}
				comparison := fmt.Sprintf("convolution 64->64 5x5 14x14 batch %d %s, %s", batch, direction, precision)
				if r.late(comparison) {
					continue
				}
				open := func(device tensor.Device) (contestant, error) {
					l, err := newLone(device, s, i)
					l.device = device
					if err == nil {
						err = l.fill(&s.Launches[i])
					}
					return l, err
				}
				request := peerRequest{Work: "convolution", Batch: batch, Sizes: []int{64, 64, 14, 5, 2}, Direction: direction, Precision: precision}
				if err := r.compare(ctx, comparison, precision, open, request, float64(batch)*wideWork/1e9, "GFLOP"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// timeLaunches times each launch of the training steps by itself.
func (r *gpuRun) timeLaunches(ctx context.Context) error {
	for _, step := range r.steps {
		for _, chains := range r.chains {
			for _, precision := range r.precisions {
				comparison := fmt.Sprintf("launches of %s, %d chains, %s", step, chains, precision)
				if r.late(comparison) {
					continue
				}
				t, err := parseTraining(step, "psgld")
				if err != nil {
					return err
				}
				if err := r.profile(ctx, t, chains, precision, comparison); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *gpuRun) profile(ctx context.Context, t training, chains int, precision, comparison string) (err error) {
	defer func() { err = r.excuse(ctx, comparison, err) }()
	m, err := r.model()
	if err != nil {
		return err
	}
	s, err := t.schedule(1) // the host's memory is one chain's
	if err != nil {
		return err
	}
	s.Chains = chains
	device, err := r.open(precision)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, device.Close()) }()
	fmt.Println(comparison)
	for i := range s.Launches {
		l := &s.Launches[i]
		does, err := newLone(device, s, i)
		if err != nil {
			fmt.Printf("  left out: %v\n", err)
			return nil
		}
		one := &side{name: l.Kernel + " " + l.Label, does: does, most: mostGPUSteps}
		err = alternate(ctx, []*side{one}, 1)
		if err := cmp.Or(err, does.close()); err != nil {
			return err
		}
		bytes := 0
		for _, a := range l.Arguments {
			if a.Buffer != nil && a.Buffer.Arena != tensor.Shared {
				bytes += a.Buffer.Bytes() * (int(a.Access&tensor.Read) + int(a.Access&tensor.Write)/int(tensor.Write))
			}
		}
		f := one.figures()
		alone := s
		alone.Launches = s.Launches[i : i+1]
		_, expected, err := cuda.Predict(alone, m, cuda.Precision(precision))
		if err != nil {
			return err
		}
		r.record.Entries = append(r.record.Entries, entry{
			Case: comparison, Side: one.name, Seconds: f, Rate: float64(chains*bytes) / f.Median / 1e9, Unit: "GB", Predicted: expected, Model: m.Name,
		})
		fmt.Printf("  %9.2f us  predicted %9.2f us  %8.1f GB/s  %s\n", 1e6*f.Median, 1e6*expected, float64(chains*bytes)/f.Median/1e9, one.name)
	}
	return nil
}
