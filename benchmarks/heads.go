package main

import (
	"cmp"
	"fmt"
	"math"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// heads is sampling linear heads on features by HMC on all data. A step is a draw of each chain.
type heads struct {
	images, features, classes, chains, leapfrogs int
}

// headStepSize is so small that no draw is rejected, and the same on all sides.
const headStepSize = 1e-4

func headsCommand(o *options) *cobra.Command {
	var h heads
	var peers []string
	c := &cobra.Command{
		Use:   "heads",
		Short: "Many chains of HMC for a head on features, next to BlackJAX and NumPyro",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if min(h.images, h.features, h.classes-1, h.chains, h.leapfrogs) < 1 {
				return errors.Errorf("benchmarks: --images, --features, --chains and --leapfrogs must be at least 1, and --classes at least 2, got %+v", h)
			}
			r := newRecord()
			ours, err := h.load(o.threads)
			if err != nil {
				return err
			}
			sides := []*side{{name: "pollen", does: ours}}
			defer func() { err = cmp.Or(err, closeAll(sides)) }()
			for _, name := range peers {
				other, err := preparePeer(*o, headsProgram, peerRequest{
					Work: "heads", Device: "cpu", Mode: name, Threads: o.threads, Chains: h.chains, Rate: headStepSize, Prior: 1,
					Sizes: []int{h.images, h.features, h.classes, h.leapfrogs},
				})
				if why, missing := err.(absent); missing {
					fmt.Printf("  %s is left out: %v\n", name, why)
					r.Left = append(r.Left, name)
					continue
				}
				if err != nil {
					return err
				}
				sides = append(sides, &side{name: name, does: other})
			}
			fmt.Printf("heads of %d classes on %d features of %d images, HMC of %d leapfrog steps, float32 network, %s\n",
				h.classes, h.features, h.images, h.leapfrogs, r.Machine.describe())
			if err := alternate(c.Context(), sides, o.rounds); err != nil {
				return err
			}
			r.add(fmt.Sprintf("heads %d classes %d features %d images %d leapfrogs, %d chains", h.classes, h.features, h.images, h.leapfrogs, h.chains),
				sides, float64(h.chains), "draws")
			r.printFrom(0)
			return r.write(o)
		},
	}
	flags := c.Flags()
	flags.IntVar(&h.images, "images", 5000, "images")
	flags.IntVar(&h.features, "features", 1280, "features of an image")
	flags.IntVar(&h.classes, "classes", 10, "classes")
	flags.IntVar(&h.chains, "chains", 1000, "chains")
	flags.IntVar(&h.leapfrogs, "leapfrogs", 1, "leapfrog steps of a draw")
	flags.StringSliceVar(&peers, "peers", []string{"blackjax", "numpyro"}, "the other frameworks")
	return c
}

// headSession is a session in which leapfrogs steps are a draw.
type headSession struct {
	pollen
	leapfrogs int
}

func (h *headSession) run(draws int) (float64, error) { return h.pollen.run(draws * h.leapfrogs) }

func (h heads) load(threads int) (contestant, error) {
	b := graph.New(tensor.Float64)
	narrow := b.Within(tensor.Float32)
	x, labels := b.Data("features", tensor.Float32, h.images, h.features), b.Data("labels", tensor.Int32, h.images)
	logits := layers.Linear{Name: "head", Outputs: h.classes}.Apply(b, x)
	loss := b.Apply(op.Mean{}, b.Apply(op.CrossEntropy{}, logits, labels))
	narrow()
	posterior := langevin.Posterior{DataSize: h.images, Prior: langevin.Gaussian(1)}
	sampler := mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: h.leapfrogs}, StepSize: headStepSize}
	if _, err := sampler.Attach(b, mcmc.Target{Potential: posterior.Potential(b, b.Cast(loss)), Temperature: 1}); err != nil {
		return nil, err
	}
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	s := &headSession{pollen{device: tensor.NewHost(threads)}, h.leapfrogs}
	if s.session, err = program.Load(s.device, graph.LoadOptions{Seed: 1, Chains: h.chains}); err != nil {
		return nil, err
	}
	rows, classes := make([]float32, h.images*h.features), make([]int32, h.images)
	for i := range rows {
		rows[i] = float32(math.Sin(float64(i) * 0.7))
	}
	for i := range classes {
		classes[i] = int32(i % h.classes)
	}
	if err := graph.Write(s.session, "features", 0, 0, rows); err != nil {
		return nil, err
	}
	return s, graph.Write(s.session, "labels", 0, 0, classes)
}
