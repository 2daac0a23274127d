package main

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

func kernelsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "kernels",
		Short: "Kernels next to PyTorch's, and as fractions of measured peaks: multiply-adds in registers, a copy of memory",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r := newRecord()
			fmt.Printf("kernels, float32, %s, %s\n", kernel.InstructionSet(), r.Machine.describe())
			for _, threads := range threadCounts(o.threads) {
				if err := heavyKernels(c, o, threads, r); err != nil {
					return err
				}
			}
			for _, threads := range threadCounts(o.threads) {
				if err := updateKernels(c, o, threads, r); err != nil {
					return err
				}
			}
			return r.write(o)
		},
	}
}

// threadCounts are one thread and all of them.
func threadCounts(threads int) []int {
	if threads == 1 {
		return []int{1}
	}
	return []int{1, threads}
}

// heavyCase is a product or a convolution, with a peer's request for the same.
type heavyCase struct {
	name  string
	plan  func() (kernel.Routine, error)
	size  [3]int // out, a, b in elements
	ops   float64
	peers peerRequest
}

// heavy are the products and convolutions of the reference networks at batch 100, and large square
// products.
var heavy = []heavyCase{
	gemm("gemm 512x512x512", kernel.Gemm{M: 512, N: 512, K: 512}),
	gemm("gemm 1024x1024x1024", kernel.Gemm{M: 1024, N: 1024, K: 1024}),
	gemm("gemm 6400x64x1600", kernel.Gemm{M: 6400, N: 64, K: 1600}),
	gemm("gemm 100x256x3136, B transposed", kernel.Gemm{M: 100, N: 256, K: 3136, TransposeB: true}),
	convolution("conv 64->64 5x5 14x14", wide, 0),
	convolution("conv 64->64 5x5 14x14", wide, 1),
	convolution("conv 64->64 5x5 14x14", wide, 2),
	convolution("conv 1->64 5x5 28x28", first, 0),
	convolution("conv 1->64 5x5 28x28", first, 2),
	convolution("conv 10->20 5x5 12x12", small, 0),
	convolution("conv 10->20 5x5 12x12", small, 1),
	convolution("conv 10->20 5x5 12x12", small, 2),
}

var (
	wide  = kernel.Conv2D{B: 100, C: 64, H: 14, W: 14, K: 64, R: 5, S: 5, StrideH: 1, StrideW: 1, PadH: 2, PadW: 2, DilationH: 1, DilationW: 1}
	first = kernel.Conv2D{B: 100, C: 1, H: 28, W: 28, K: 64, R: 5, S: 5, StrideH: 1, StrideW: 1, PadH: 2, PadW: 2, DilationH: 1, DilationW: 1}
	small = kernel.Conv2D{B: 100, C: 10, H: 12, W: 12, K: 20, R: 5, S: 5, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}
)

func gemm(name string, g kernel.Gemm) heavyCase {
	return heavyCase{
		name, g.Plan, [3]int{g.M * g.N, g.M * g.K, g.K * g.N}, 2 * float64(g.M*g.N*g.K),
		peerRequest{Work: "product", Sizes: []int{g.M, g.N, g.K}, Transposed: g.TransposeB},
	}
}

// passes are a convolution's three directions, by their output: the image out, the image in, or the
// filter.
var passes = [...]struct {
	name, peers string
	plan        func(kernel.Conv2D) (kernel.Routine, error)
}{
	{"forward", "forward", kernel.Conv2D.Forward},
	{"input gradient", "input", kernel.Conv2D.BackwardInput},
	{"filter gradient", "filter", kernel.Conv2D.BackwardFilter},
}

func convolution(name string, c kernel.Conv2D, pass int) heavyCase {
	x, y, w := c.B*c.C*c.H*c.W, c.B*c.K*c.P()*c.Q(), c.K*c.C*c.R*c.S
	d := passes[pass]
	return heavyCase{
		name + " " + d.name, func() (kernel.Routine, error) { return d.plan(c) }, [][3]int{{y, x, w}, {x, y, w}, {w, y, x}}[pass],
		2 * float64(y*c.C*c.R*c.S),
		peerRequest{Work: "convolution", Batch: c.B, Sizes: []int{c.K, c.C, c.H, c.R, c.PadH}, Direction: d.peers},
	}
}

// heavyKernels compares each product and convolution with the peak of multiply-adds in registers,
// and with PyTorch, if it is installed.
func heavyKernels(c *cobra.Command, o *options, threads int, r *record) error {
	torch := &service{name: "torch", program: torchProgram, mode: "eager"}
	defer torch.close()
	for _, h := range heavy {
		if err := h.contest(c, o, threads, torch, r); err != nil {
			return err
		}
	}
	return nil
}

func (h heavyCase) contest(c *cobra.Command, o *options, threads int, torch *service, r *record) (err error) {
	plan, err := h.plan()
	if err != nil {
		return err
	}
	ours, err := newPlanned(plan, h.size, threads)
	if err != nil {
		return err
	}
	sides := []*side{{name: "registers", does: &registers{threads: threads}}, {name: "pollen", does: ours}}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	request := h.peers
	request.Device, request.Threads, request.Precision = "cpu", threads, "fp32"
	if theirs := torch.invite(*o, request); theirs != nil {
		sides = append(sides, theirs)
	}
	if err := alternate(c.Context(), sides, o.rounds); err != nil {
		return err
	}
	peak, pollen := registerOperations*float64(threads)/sides[0].figures().Median, sides[1].figures().Median
	from := len(r.Entries)
	name := fmt.Sprintf("%s, %d threads", h.name, threads)
	if plan.Winograd() { // the rate counts the direct algorithm's operations, more than are made
		name += " (Winograd, effective)"
	}
	for i, s := range sides {
		e := entry{Case: name, Side: s.name, Seconds: s.figures(), Rate: peak / 1e9, Unit: "GFLOP", Fraction: 1}
		if i > 0 {
			e.Rate = h.ops / e.Seconds.Median / 1e9
			e.Fraction, e.Ratio = e.Rate*1e9/peak, e.Seconds.Median/pollen
		}
		r.Entries = append(r.Entries, e)
	}
	r.printFrom(from)
	return nil
}

// registers measures the peak of multiply-adds, on its own threads.
type registers struct{ threads int }

const registerLoops = 1 << 16

var registerOperations = kernel.MultiplyAdds(registerLoops)

func (r *registers) run(steps int) (float64, error) {
	return timed(func() error {
		var all sync.WaitGroup
		for range r.threads {
			all.Go(func() {
				for range steps {
					kernel.MultiplyAdds(registerLoops)
				}
			})
		}
		all.Wait()
		return nil
	})
}

func (r *registers) close() error { return nil }

// planned is a plan of package kernel as the only launch of a workload.
type planned struct {
	host   *tensor.Host
	runner tensor.Runner
}

func newPlanned(plan kernel.Routine, size [3]int, threads int) (contestant, error) {
	offset := 0
	var arguments []tensor.Argument
	for _, n := range size {
		b := tensor.NewBuffer("operand", tensor.Scratch, tensor.Float32, n)
		b.Offset = offset
		offset += tensor.Align(b.Bytes())
		arguments = append(arguments, tensor.InOut(b))
	}
	launch := tensor.Launch{Kernel: "planned", Arguments: arguments, Host: tensor.HostKernel{Workspace: 4 * plan.Workspace, Private: 4 * plan.Scratch}}
	for phase, tiles := range plan.Phases {
		launch.Host.Phases = append(launch.Host.Phases, tensor.Phase{Tiles: tiles, Run: func(a *tensor.Args, tile int) {
			kernel.Run(&plan, phase, tile, kernel.Operands[float32]{
				Out: tensor.Slice[float32](a, 0), A: tensor.Slice[float32](a, 1), B: tensor.Slice[float32](a, 2),
				Workspace: tensor.Workspace[float32](a), Scratch: tensor.Private[float32](a),
			})
		}})
	}
	p := &planned{host: tensor.NewHost(threads)}
	schedule := tensor.Workload{Launches: []tensor.Launch{launch}, Chains: 1}
	schedule.Bytes[tensor.Scratch] = offset
	var err error
	p.runner, err = p.host.Load(schedule)
	return p, err
}

func (p *planned) run(steps int) (float64, error) {
	return timed(func() error { return p.runner.Run(steps) })
}

func (p *planned) close() error { return cmp.Or(p.runner.Close(), p.host.Close()) }

// updated is the number of parameters in the update kernels' timings: more than any cache holds.
const updated = 16 << 20

// updates are the update kernels, with the number of floats that each reads and writes per
// parameter.
var updates = []struct {
	name   string
	floats float64
	attach func(b *graph.Builder, w, dw *graph.Node)
}{
	{"sgd update", 3, func(b *graph.Builder, w, dw *graph.Node) {
		optimizers.Update(b, optimizers.SGD{}, []*graph.Node{w}, []*graph.Node{dw}, b.Table("rates", []float64{rate}))
	}},
	{"momentum update", 5, func(b *graph.Builder, w, dw *graph.Node) {
		optimizers.Update(b, optimizers.Momentum{Decay: 0.9}, []*graph.Node{w}, []*graph.Node{dw}, b.Table("rates", []float64{rate}))
	}},
	{"sgld update", 3, func(b *graph.Builder, w, dw *graph.Node) { sample(b, langevin.SGLD{}, w, dw) }},
	{"psgld update", 5, func(b *graph.Builder, w, dw *graph.Node) {
		sample(b, langevin.PSGLD{Alpha: psgldAlpha, Lambda: psgldLambda, Gamma: langevin.GammaNone}, w, dw)
	}},
}

func sample(b *graph.Builder, s langevin.Sampler, w, dw *graph.Node) {
	s.Update(b, langevin.UpdateInputs{
		Name: "w", DataSize: 60000, Prior: langevin.Gaussian(priorStd),
		Rates: b.Table("rates", []float64{rate}), Temperatures: b.Table("temperatures", []float64{1}),
	}, w, dw)
}

// updateKernels compares updates with a copy of the same number of bytes.
func updateKernels(c *cobra.Command, o *options, threads int, r *record) (err error) {
	var sides []*side
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	for _, u := range updates {
		b := graph.New(tensor.Float32)
		u.attach(b, b.Parameter("w", nil, updated), b.State("gradient", nil, updated))
		program, err := b.Compile()
		if err != nil {
			return err
		}
		p := &pollen{device: tensor.NewHost(threads)}
		if p.session, err = program.Load(p.device, graph.LoadOptions{Seed: 1}); err != nil {
			return err
		}
		copied := newCopied(int(u.floats/2*updated), threads)
		sides = append(sides, &side{name: "copy of as much", does: copied}, &side{name: u.name, does: p})
	}
	if err := alternate(c.Context(), sides, o.rounds); err != nil {
		return err
	}
	fmt.Printf("updates of %d parameters, %d threads\n", updated, threads)
	for i, u := range updates {
		copied, update := sides[2*i].figures(), sides[2*i+1].figures()
		bytes := 4 * u.floats * updated
		r.Entries = append(r.Entries, entry{
			Case: fmt.Sprintf("updates, %d threads", threads), Side: u.name, Seconds: update, Rate: bytes / update.Median / 1e9, Unit: "GB",
			Fraction: copied.Median / update.Median,
		})
		fmt.Printf("  %-16s %7.3f ns a parameter  %6.2f GB/s  %5.2f times a copy of as many bytes (%.2f GB/s)\n", u.name,
			1e9*update.Median/updated, bytes/update.Median/1e9, update.Median/copied.Median, bytes/copied.Median/1e9)
	}
	return nil
}

// copied copies memory on its own threads.
type copied struct{ to, from [][]float32 }

func newCopied(elements, threads int) *copied {
	c := &copied{}
	for range threads {
		c.to, c.from = append(c.to, make([]float32, elements/threads)), append(c.from, make([]float32, elements/threads))
	}
	for i := range c.from {
		for j := range c.from[i] { // touched, so that it is real memory and not the zero page
			c.from[i][j], c.to[i][j] = 1, 2
		}
	}
	return c
}

func (c *copied) run(steps int) (float64, error) {
	return timed(func() error {
		var all sync.WaitGroup
		for i := range c.to {
			all.Go(func() {
				for range steps {
					copy(c.to[i], c.from[i])
				}
			})
		}
		all.Wait()
		return nil
	})
}

func (c *copied) close() error { return nil }
