package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// singleLaunch repeats one launch of a workload, in memory that is zeroed or filled.
type singleLaunch struct {
	device tensor.Device // to close, or nil
	runner tensor.Runner
}

func newSingleLaunch(device tensor.Device, s tensor.Workload, launch int) (*singleLaunch, error) {
	s.Launches = s.Launches[launch : launch+1]
	runner, err := device.Load(s)
	return &singleLaunch{runner: runner}, err
}

// fill writes normals to what the launch reads, as the peers do: with zeros a GPU uses less power,
// and may multiply faster.
func (l *singleLaunch) fill(launch *tensor.Launch) error {
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

func (l *singleLaunch) run(steps int) (float64, error) {
	return timed(func() error { return l.runner.Run(steps) })
}

func (l *singleLaunch) close() error {
	err := l.runner.Close()
	if l.device != nil {
		err = cmp.Or(err, l.device.Close())
	}
	return err
}

// The convolution that does most of mnist-64-64-256's work: 64 to 64 channels, 5x5, on 14x14.
const (
	wideFilter = 64 * 64 * 5 * 5
	wideWork   = 2 * wideFilter * 14 * 14 // operations per example
)

// directions are a convolution's kernels, with the peers' names for them.
var directions = []struct{ kernel, name string }{{"conv2d_bwd_input", "input"}, {"conv2d_bwd_filter", "filter"}, {"conv2d_", "forward"}}

// wideDirection returns the direction of the wide convolution that a launch computes, "" for other
// launches.
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

// timeConvolutions times the wide convolution in its three directions next to cuDNN's best.
func (r *gpuRun) timeConvolutions(ctx context.Context) error {
	for _, precision := range r.precisions {
		for _, batch := range r.batches {
			s, err := training{"mnist-64-64-256", batch, "sgd"}.schedule(1)
			if err != nil {
				return err
			}
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
					l, err := newSingleLaunch(device, s, i)
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
