package bayes_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// Tamed is SGLD whose drift is at most Bound in a step, g being the gradient of U/N:
//
//	theta <- theta - d/(1 + |d|/Bound) + sqrt(2 h T) xi,    d = h N g
//
// Source: Brosse, Durmus, Moulines and Sabanis, The tamed unadjusted Langevin algorithm (2019).
type Tamed struct {
	Bound float64 // of each element's drift, above 0
}

func (Tamed) Name() string { return "tamed SGLD" }

func (s Tamed) Validate() error {
	if !(s.Bound > 0) {
		return fmt.Errorf("tamed: Bound must be above 0, got %v", s.Bound)
	}
	return nil
}

func (s Tamed) Update(b *graph.Builder, f langevin.UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	update := tamedUpdate{s, f.Prior, f.DataSize, b.Stream()}
	return b.Apply(update, parameter, gradient, f.Rates, f.Temperatures, b.Header())
}

// tamedUpdate moves w: w, dw, rates and temperatures by step, header -> statistics.
type tamedUpdate struct {
	rule     Tamed
	prior    langevin.Prior
	dataSize int
	stream   uint16
}

func (tamedUpdate) Name() string   { return "tamed update" }
func (tamedUpdate) Updates() []int { return []int{0} }

func (tamedUpdate) Shape(in []tensor.Shape) (tensor.Shape, error) { return op.UpdateShape(in, 0, 2) }

// Lower has no kernel for GPUs: the method runs on the host.
func (u tamedUpdate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("tamed_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, tamedTile[float32], tamedTile[float64]),
		l.Out(), l.InOut(0), l.In(1), l.In(2), l.In(3), l.In(4))
}

func tamedTile[T float32 | float64](u tamedUpdate, a *tensor.Args, lo, hi int) (statistic float64) {
	header := tensor.Slice[uint64](a, 5)
	rate, temperature := op.Entry(tensor.Slice[T](a, 3), header), op.Entry(tensor.Slice[T](a, 4), header)
	scale := T(langevin.NoiseScale(float64(rate)/float64(u.dataSize), float64(temperature), 1))
	w, dw := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
	var gradients [random.BlockSize]T
	var z [random.BlockSize]float32
	for from := 0; from < len(w); from += random.BlockSize {
		w := w[from:min(from+random.BlockSize, len(w))]
		g := gradients[:len(w)]
		statistic += langevin.Gradient(u.prior, u.dataSize, g, w, dw[from:][:len(w)])
		random.NormalBlock(op.AddressOf(header, u.stream), (lo+from)/random.BlockSize, len(w), &z)
		for i := range w {
			d := rate * g[i]
			w[i] += scale*T(z[i]) - d/(1+max(d, -d)/T(u.rule.Bound))
		}
	}
	return statistic
}

// A custom sampler is a struct with an update rule. Once it is registered, it trains, and another
// program that registers it can open the run.
func ExampleRegister() {
	if err := trainTamed(); err != nil {
		fmt.Println(err)
	}
	// Output: tamed:bound=0.05 1
}

func trainTamed() error {
	if err := bayes.Register("tamed", Tamed{Bound: 0.1}, optimizers.Constant{Rate: 0.1}); err != nil {
		return err
	}
	pixels, labels := make([]byte, 200*8*8), make([]int32, 200)
	for i := range pixels {
		image, row, column := i/64, i/8%8, i%8
		labels[image] = int32(image % 2)
		pixels[i] = byte(255 * ([]int{row, column}[image%2] / 2 % 2))
	}
	data, err := datasets.New("stripes", pixels, labels, 1, 8, 8, []string{"across", "along"})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "own")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	spec := bayes.Spec{Network: "mlp-16", Method: Tamed{Bound: 0.05}}
	run, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: data}, filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	scores, err := run.Assess(context.Background(), data, nil)
	if err != nil {
		return err
	}
	fmt.Println(run.Manifest().Spec.Texts()["method"], scores.Values["accuracy"])
	return nil
}
