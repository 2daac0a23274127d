package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// pretrained is the work on a network of an ONNX file.
type pretrained struct {
	network string
	batch   int
	work    string // features or train
	clock   string // wall or processor
	file    string
	own     bool // the file is the user's: peers do not have the network
}

// pretrainedSide is the height and width of images, pretrainedClasses the number of classes.
const (
	pretrainedSide    = 224
	pretrainedClasses = 1000
)

// pretrainedWorks are the works, pretrainedPeers the modes of the peers.
var (
	pretrainedWorks = []string{"features", "train"}
	pretrainedPeers = []string{"onnxruntime", "eager", "channels-last", "compile"}
)

func pretrainedCommand(o *options) *cobra.Command {
	var networks, works, peers []string
	p := pretrained{}
	c := &cobra.Command{
		Use:   "pretrained",
		Short: "Features and training steps of networks from ONNX files, next to ONNX Runtime and PyTorch",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if p.clock != "wall" && p.clock != "processor" {
				return errors.Errorf("benchmarks: --clock must be wall or processor, got %q", p.clock)
			}
			if err := cmp.Or(known("works", works, pretrainedWorks...), known("peers", peers, pretrainedPeers...)); err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "pretrained")
			if err != nil {
				return errors.Wrap(err, "benchmarks")
			}
			defer os.RemoveAll(dir)
			r := newRecord()
			fmt.Printf("networks at %d x %d, float32, %s, time of the %s clock\n", pretrainedSide, pretrainedSide, r.Machine.describe(), p.clock)
			for _, p.network = range networks {
				p.file = filepath.Join(dir, p.network+".onnx")
				if err := p.export(o); err != nil {
					return err
				}
				for _, p.work = range works {
					if err := p.compare(c.Context(), o, peers, r); err != nil {
						return err
					}
				}
			}
			return r.write(o)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&networks, "networks", []string{"efficientnet_lite0", "mobilenet_v2", "resnet18"}, "efficientnet_lite0, or those of torchvision.models")
	flags.StringSliceVar(&works, "works", pretrainedWorks, "features, train")
	flags.StringSliceVar(&peers, "peers", pretrainedPeers, "modes of the peers")
	flags.IntVar(&p.batch, "batch", 32, "batch size")
	flags.StringVar(&p.clock, "clock", "wall", "wall, or processor: the time that a side's own threads take, for machines that others use (Unix)")
	return c
}

// export has the peer write the network's file.
func (p pretrained) export(o *options) error {
	peer, err := startPeer(*o, pretrainedProgram)
	if err != nil {
		return err
	}
	_, err = peer.ask(peerRequest{Work: "export", Network: p.network, File: p.file})
	return cmp.Or(err, peer.close())
}

func (p pretrained) compare(ctx context.Context, o *options, modes []string, r *record) (err error) {
	ours, err := p.load(o.threads)
	if err != nil {
		return err
	}
	sides := []*side{{name: "pollen", does: ours}}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	for _, mode := range modes {
		if mode == "onnxruntime" && p.work == "train" {
			continue
		}
		other, err := preparePeer(*o, pretrainedProgram, peerRequest{
			Work: p.work, Network: p.network, Batch: p.batch, Mode: mode, Threads: o.threads, File: p.file, Clock: p.clock,
		})
		if why, missing := err.(absent); missing {
			fmt.Printf("  %s is left out: %v\n", mode, why)
			r.Left = append(r.Left, mode)
			continue
		}
		if err != nil {
			return err
		}
		name := mode
		if mode != "onnxruntime" {
			name = "torch-" + mode
		}
		sides = append(sides, &side{name: name, does: other})
	}
	if err := alternate(ctx, sides, o.rounds); err != nil {
		return err
	}
	from := len(r.Entries)
	r.add(fmt.Sprintf("pretrained %s batch %d %s, %s time", p.network, p.batch, p.work, p.clock), sides, float64(p.batch), "images")
	for i, s := range sides {
		memory, err := s.does.(interface{ memory() (int, error) }).memory()
		if err != nil {
			return err
		}
		r.Entries[from+i].Memory = memory
	}
	r.printFrom(from)
	return nil
}

// memory asks a peer for the bytes that its work takes.
func (p *peer) memory() (int, error) {
	a, err := p.ask(peerRequest{Memory: true})
	return a.Memory, err
}

// network is a session of Pollen on one batch of images.
type network struct {
	pollen
	clock string
	bytes int
}

// load loads the work on the host.
func (p pretrained) load(threads int) (*network, error) { return p.loadOn(tensor.NewHost(threads)) }

// loadOn loads the work on a device.
func (p pretrained) loadOn(device tensor.Device) (*network, error) {
	program, err := p.compile()
	if err != nil {
		return nil, err
	}
	n := &network{pollen: pollen{device: device}, clock: p.clock}
	size, _, err := program.Size(n.device, 1)
	if err != nil {
		return nil, err
	}
	n.bytes = size.Host
	if n.session, err = program.Load(n.device, graph.LoadOptions{Seed: 1}); err != nil {
		return nil, err
	}
	return n, p.fill(n.session)
}

// compile compiles the work. Features have frozen weights; a training step updates all of them.
func (p pretrained) compile() (*graph.Program, error) {
	m, err := onnx.Open(p.file)
	if err != nil {
		return nil, err
	}
	o := onnx.Options{}
	if p.work == "features" {
		o.Frozen = func(string) bool { return true }
	}
	layer, err := m.Network(o)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	y := layer.Apply(b, b.Data("images", tensor.Float32, p.batch, 3, pretrainedSide, pretrainedSide))
	if p.work == "train" {
		loss := b.Apply(op.Mean{}, b.Apply(op.CrossEntropy{}, y, b.Data("labels", tensor.Int32, p.batch)))
		parameters := b.Parameters()
		optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(loss, parameters...), b.Table("rates", []float64{1e-6}))
		y = loss
	}
	b.Output("y", y)
	return b.Compile()
}

// fill writes the images, and labels if there are any.
func (p pretrained) fill(s *graph.Session) error {
	images := make([]float32, p.batch*3*pretrainedSide*pretrainedSide)
	for i := range images {
		images[i] = float32(math.Sin(float64(i) * 0.7))
	}
	if err := graph.Write(s, "images", 0, 0, images); err != nil || p.work != "train" {
		return err
	}
	labels := make([]int32, p.batch)
	for i := range labels {
		labels[i] = int32(i % pretrainedClasses)
	}
	return graph.Write(s, "labels", 0, 0, labels)
}

func (n *network) memory() (int, error) { return n.bytes, nil }

func (n *network) run(steps int) (float64, error) {
	if n.clock == "wall" {
		return n.pollen.run(steps)
	}
	begin, err := timeOfThreads()
	if err != nil {
		return 0, err
	}
	if err := n.session.Run(steps); err != nil {
		return 0, err
	}
	end, err := timeOfThreads()
	return (end - begin).Seconds(), err
}
