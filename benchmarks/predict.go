package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

func predictCommand(o *options) *cobra.Command {
	var networks []string
	var batches []int
	var samples int
	c := &cobra.Command{
		Use:   "predict",
		Short: "Class probabilities of images, under one sample and averaged over samples",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive("samples", samples); err != nil {
				return err
			}
			r := newRecord()
			fmt.Printf("predictions, float32, %s\n", r.Machine.describe())
			reported := map[string]bool{}
			for _, network := range networks {
				for _, batch := range batches {
					if err := comparePredictions(c.Context(), o, training{network, batch, "predict"}, samples, r, reported); err != nil {
						return err
					}
				}
			}
			return r.write(o)
		},
	}
	c.Flags().StringSliceVar(&networks, "networks", []string{"lenet-small", "mnist-64-64-256"}, "networks, as layers.New names them")
	c.Flags().IntSliceVar(&batches, "batches", []int{100, 512}, "batch sizes")
	c.Flags().IntVar(&samples, "samples", 10, "samples of the average")
	return c
}

// predictor computes probabilities for the same images, under one sample after another.
type predictor struct {
	host          *tensor.Host
	predictor     *samples.SamplePredictor
	samples       []samples.Sample
	probabilities []float32
	mean          []float32
}

func newPredictor(t training, threads, count int) (*predictor, error) {
	network, err := layers.New(t.network, 10)
	if err != nil {
		return nil, err
	}
	pixels, _ := t.fixedData(t.examples())
	channels, side := t.images()
	means, stds := t.moments()
	images := samples.Images{Pixels: pixels, Channels: channels, Height: side, Width: side, Mean: means, Std: stds}
	p := &predictor{
		host: tensor.NewHost(threads), probabilities: make([]float32, 10*t.examples()), mean: make([]float32, 10*t.examples()),
	}
	if p.predictor, err = samples.NewSamplePredictor(p.host, tensor.Float32, images, t.batch, network.Apply); err != nil {
		return nil, err
	}
	for range count {
		s, err := someSample(t, p.host)
		if err != nil {
			return nil, err
		}
		p.samples = append(p.samples, s)
	}
	return p, nil
}

// someSample returns a state of the network before any training.
func someSample(t training, host *tensor.Host) (samples.Sample, error) {
	program, err := training{t.network, t.batch, "sgd"}.compile()
	if err != nil {
		return samples.Sample{}, err
	}
	session, err := program.Load(host, graph.LoadOptions{Seed: 1})
	if err != nil {
		return samples.Sample{}, err
	}
	s, err := samples.FromSession(session, 0, 1)
	return s, cmp.Or(err, session.Close())
}

// run predicts all examples, ten batches, under each sample in turn, until steps batches are done.
func (p *predictor) run(steps int) (float64, error) {
	return timed(func() error {
		for i := range steps {
			s := p.samples[i%len(p.samples)]
			if err := p.predictor.Predict(s, p.probabilities); err != nil {
				return err
			}
			for j, v := range p.probabilities {
				p.mean[j] += v
			}
		}
		return nil
	})
}

func (p *predictor) close() error {
	return cmp.Or(p.predictor.Close(), p.host.Close())
}

// batches makes a peer's step as large as ours: all examples.
type batches struct{ contestant }

func (b batches) run(steps int) (float64, error) { return b.contestant.run(10 * steps) }

func comparePredictions(ctx context.Context, o *options, t training, samples int, r *record, reported map[string]bool) (err error) {
	ours, err := newPredictor(t, o.threads, samples)
	if err != nil {
		return err
	}
	sides := []*side{{name: "pollen", does: ours}}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	if sides, err = invite(sides, o, t, peerNames(), reported); err != nil {
		return err
	}
	for _, other := range sides[1:] {
		other.does = batches{other.does}
	}
	if err := alternate(ctx, sides, o.rounds); err != nil {
		return err
	}
	r.add(fmt.Sprintf("predict %s batch %d, %d images under a sample", t.network, t.batch, t.examples()), sides, float64(t.examples()), "images")
	r.printFrom(len(r.Entries) - len(sides))
	return nil
}
