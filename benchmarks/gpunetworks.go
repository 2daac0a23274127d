package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/tensor"
)

// eachNetwork exports the networks, and calls time for each network, work and precision.
func (r *gpuRun) eachNetwork(s *service, time func(p pretrained, precision string) error) error {
	dir, err := os.MkdirTemp("", "networks")
	if err != nil {
		return errors.Wrap(err, "benchmarks")
	}
	defer os.RemoveAll(dir)
	defer s.close()
	for _, text := range r.networks {
		p, err := parseNetwork(text)
		if err != nil {
			return err
		}
		if p.file == "" {
			p.file = filepath.Join(dir, p.network+".onnx")
			if err := s.export(r.options, p); err != nil {
				return err
			}
		}
		for _, p.work = range r.networkWork {
			for _, precision := range r.precisions {
				if err := time(p, precision); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// parseNetwork reads "resnet18:32", a network that the peer exports, or "my/network.onnx:32".
func parseNetwork(text string) (pretrained, error) {
	name, size := text, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		name, size = text[:at], text[at+1:]
	}
	batch, err := strconv.Atoi(size)
	if err != nil || batch < 1 || name == "" {
		return pretrained{}, errors.Errorf("benchmarks: a network must be a name or an ONNX file with a batch size, as resnet18:32, got %q", text)
	}
	p := pretrained{network: name, batch: batch, clock: "wall"}
	if strings.HasSuffix(name, ".onnx") {
		p.network, p.file, p.own = strings.TrimSuffix(filepath.Base(name), ".onnx"), name, true
	}
	return p, nil
}

// networkService returns the peer that exports networks, and times them.
func networkService() *service {
	return &service{name: "torch-graph", program: pretrainedProgram, mode: "graph", works: []string{"features", "train"}}
}

// export has the peer write the network's file.
func (s *service) export(o options, p pretrained) (err error) {
	if s.peer == nil {
		if s.peer, err = startPeer(o, s.program); err != nil {
			return err
		}
	}
	_, err = s.peer.ask(peerRequest{Work: "export", Network: p.network, File: p.file})
	return err
}

func (p pretrained) comparison(precision string) string {
	return fmt.Sprintf("network %s batch %d %s, %s", p.network, p.batch, p.work, precision)
}

// timeNetworks times networks of ONNX files next to PyTorch, and each call of a step.
func (r *gpuRun) timeNetworks(ctx context.Context) error {
	s := networkService()
	return r.eachNetwork(s, func(p pretrained, precision string) error {
		comparison := p.comparison(precision)
		if r.late(comparison) {
			return nil
		}
		r.invited = nil
		if slices.Contains(r.peers, s.name) && !p.own {
			r.invited = []*service{s}
		}
		open := func(device tensor.Device) (contestant, error) { return p.loadOn(device) }
		request := peerRequest{Work: p.work, Network: p.network, Batch: p.batch, File: p.file}
		if err := r.compare(ctx, comparison, precision, open, request, float64(p.batch), "images"); err != nil {
			return err
		}
		return r.timeNetworkCalls(ctx, p, precision)
	})
}

func (r *gpuRun) timeNetworkCalls(ctx context.Context, p pretrained, precision string) error {
	if r.repetitions == 0 {
		return nil
	}
	return r.timeCallsOf(ctx, stepCalls{
		comparison: "calls of " + p.comparison(precision), precision: precision, chains: 1, images: p.batch,
		load:      func(device tensor.Device) (contestant, error) { return p.loadOn(device) },
		predicted: func(m cuda.Model) (float64, error) { step, _, err := p.predicted(m, precision); return step, err },
	})
}

// predicted returns the time that a GPU's model predicts for a step, and its calls.
func (p pretrained) predicted(m cuda.Model, precision string) (float64, []cuda.Predicted, error) {
	program, err := p.compile()
	if err != nil {
		return 0, nil, err
	}
	s, err := scheduleOf(program, 1)
	if err != nil {
		return 0, nil, err
	}
	calls, step, err := cuda.Predict(s, m, cuda.Precision(precision))
	return step, calls, err
}

func (r *gpuRun) predictNetworks(m cuda.Model) (err error) {
	return r.eachNetwork(networkService(), func(p pretrained, precision string) error {
		step, calls, err := p.predicted(m, precision)
		r.putPrediction(m, p.comparison(precision), float64(p.batch), step, calls)
		return cmp.Or(err, r.record.save(r.options.json))
	})
}
