package op

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// jointProduct is a product of several chains at once. One factor is shared, such as the features
// of a data set; the other factor differs between chains, such as their weights, and is called a
// chain's own. The own factors are put side by side, and one product computes
//
//	C1 C2 ... = A (B1 B2 ...)    if A is shared
//
//	C1   A1
//	C2 = A2 B                    if B is shared
//	..   ..
//
// The shared factor is then read once for all chains. SIMD vectors, which the few columns of one
// chain would leave half empty, are full.
type jointProduct struct {
	kernel.Gemm // of one chain
	sharedA     bool
}

const (
	// jointWidth bounds the width of the product of all chains: a wider one would be no faster.
	jointWidth = 256
	// jointElements bounds the chains' factors, and their products.
	jointElements = 8 << 20
	// jointChains bounds the number of chains, because each needs its scratch memory.
	jointChains = 64
	// minShared is the number of elements of a shared factor below which nothing is gained.
	minShared = 1 << 12
)

// joint returns how a launch of the product computes several chains at once.
func (m MatMul) joint(l *graph.Lowering, g kernel.Gemm) tensor.Joint {
	p := jointProduct{g, l.In(0).Buffer.Arena == tensor.Shared}
	own, shared, width := g.K*g.N, g.M*g.K, g.N
	if !p.sharedA {
		own, shared, width = shared, own, g.M
	}
	if p.sharedA == (l.In(1).Buffer.Arena == tensor.Shared) || m.mask || m.bias && !p.sharedA || shared < minShared {
		return tensor.Joint{}
	}
	return tensor.Joint{
		Chains: min(jointWidth/width, jointElements/max(own, g.M*g.N), jointChains),
		Bytes:  shared * l.DType.Size(),
		Kernel: graph.Pick(l, jointKernel[float32], jointKernel[float64])(p),
	}
}

// jointKernel returns the kernels of a product whose arguments are C, A, B and, if there is one,
// the bias.
func jointKernel[T float32 | float64](p jointProduct) func(chains int) tensor.HostKernel {
	return func(chains int) tensor.HostKernel {
		whole := p.Gemm
		if p.sharedA {
			whole.N *= chains
		} else {
			whole.M *= chains
		}
		plan, err := whole.Plan()
		j := &jointRun[T]{p, chains, &plan}
		own, bias, out := j.sizes()
		if err != nil || max(own, out) > jointElements { // chains is the number for another product, and too large for this one
			return tensor.HostKernel{} // chain by chain
		}
		size := tensor.DTypeOf[T]().Size()
		host := tensor.HostKernel{Workspace: (own + bias + out + plan.Workspace) * size, Private: plan.Scratch * size}
		host.Phases = append(host.Phases, tensor.Phase{Tiles: tilesOf(j.own()), Run: j.gather})
		for i, tiles := range plan.Phases {
			host.Phases = append(host.Phases, tensor.Phase{Tiles: tiles, Run: func(a *tensor.Args, tile int) {
				kernel.Run(j.plan, i, tile, j.operands(a))
			}})
		}
		host.Phases = append(host.Phases, tensor.Phase{Tiles: tilesOf(j.products()), Run: j.scatter})
		return host
	}
}

// jointRun computes the product of a number of chains. The workspace holds the chains' own
// factors, biases and products, and the routine's workspace.
type jointRun[T float32 | float64] struct {
	jointProduct
	chains int
	plan   *kernel.Routine
}

// sizes returns the elements of all chains' own factors, biases and products.
func (j *jointRun[T]) sizes() (own, bias, out int) {
	rows, columns := j.own()
	if j.Bias != kernel.NoBias {
		bias = j.N
	}
	return j.chains * rows * columns, j.chains * bias, j.chains * j.M * j.N
}

// operands returns the operands of the product.
func (j *jointRun[T]) operands(a *tensor.Args) kernel.Operands[T] {
	own, bias, out := j.sizes()
	w := tensor.Workspace[T](a)
	o := kernel.Operands[T]{Bias: w[own:][:bias], Out: w[own+bias:][:out], Workspace: w[own+bias+out:], Scratch: tensor.Private[T](a)}
	if j.sharedA {
		o.A, o.B = tensor.SliceOf[T](a, 0, 1), w[:own]
	} else {
		o.A, o.B = w[:own], tensor.SliceOf[T](a, 0, 2)
	}
	return o
}

// own returns the rows and columns of a chain's own factor in the joint factor, where its rows
// alternate with other chains' rows. Factors that are below each other count as one row each.
func (j *jointRun[T]) own() (rows, columns int) {
	switch {
	case j.sharedA && !j.TransposeB:
		return j.K, j.N
	case j.sharedA:
		return 1, j.N * j.K
	case j.TransposeA:
		return j.K, j.M
	}
	return 1, j.M * j.K
}

// products returns the rows and columns of a chain's product in the same sense.
func (j *jointRun[T]) products() (rows, columns int) {
	if j.sharedA {
		return j.M, j.N
	}
	return 1, j.M * j.N
}

// jointRows is the number of rows of a tile that copies them. All chains' rows, which lie next to
// each other, are copied while they are in the cache.
const jointRows = 64

func tilesOf(rows, _ int) int { return ceilDiv(rows, jointRows) }

// gather copies rows of the chains' own factors next to each other. The first tile also copies the
// biases.
func (j *jointRun[T]) gather(a *tensor.Args, tile int) {
	o := j.operands(a)
	all, argument := o.A, 1
	if j.sharedA {
		all, argument = o.B, 2
	}
	rows, columns := j.own()
	for chain := range j.chains {
		from := tensor.SliceOf[T](a, chain, argument)
		for row := tile * jointRows; row < min((tile+1)*jointRows, rows); row++ {
			copy(all[(row*j.chains+chain)*columns:], from[row*columns:][:columns])
		}
		if tile == 0 && j.Bias != kernel.NoBias {
			copy(o.Bias[chain*j.N:], tensor.SliceOf[T](a, chain, 3))
		}
	}
}

// scatter copies rows of the products to the chains.
func (j *jointRun[T]) scatter(a *tensor.Args, tile int) {
	all := j.operands(a).Out
	rows, columns := j.products()
	for chain := range j.chains {
		to := tensor.SliceOf[T](a, chain, 0)
		for row := tile * jointRows; row < min((tile+1)*jointRows, rows); row++ {
			copy(to[row*columns:][:columns], all[(row*j.chains+chain)*columns:])
		}
	}
}
