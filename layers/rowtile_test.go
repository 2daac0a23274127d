package layers

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// apart is a host that runs launch after launch, each with all images.
type apart struct{ *tensor.Host }

func (h apart) Load(w tensor.Workload) (tensor.Runner, error) {
	w.Launches = slices.Clone(w.Launches)
	for i := range w.Launches {
		w.Launches[i].Host.RowTile = tensor.RowTile{}
	}
	return h.Host.Load(w)
}

// TestRowTilesOfNetworks: gradients have the same bits whether launches are run together, a few
// images at a time, or one by one, for batches of more and of fewer images than a row tile has.
func TestRowTilesOfNetworks(t *testing.T) {
	testenv.NeedsAll(t, "seven networks")
	for _, name := range []string{"lenet-small", "mnist-64-64-256", "cnn", "resnet20-frn", "resnet20-frn-silu"} {
		for _, batch := range []int{3, 37} {
			gradients := func(device tensor.Device, chains int) (all []float32) {
				defer device.Close()
				network, err := New(name, 10)
				if err != nil {
					t.Fatal(err)
				}
				b := graph.New(tensor.Float32)
				x := b.Data("input", tensor.Float32, batch, 1, 28, 28)
				loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), b.Data("labels", tensor.Int32, batch))
				parameters := b.Parameters()
				for i, g := range b.Gradients(loss, parameters...) {
					b.Output(parameters[i].Name()+" gradient", g)
				}
				program, err := b.Compile()
				if err != nil {
					t.Fatal(err)
				}
				s, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: chains})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				images := make([]float32, batch*28*28)
				random.Normals(images, 0, random.Address{Seed: 3})
				if err := graph.Write(s, "input", 0, 0, images); err != nil {
					t.Fatal(err)
				}
				if err := s.Run(1); err != nil {
					t.Fatal(err)
				}
				for _, p := range parameters {
					values := make([]float32, graph.ShapeOf(p).Elements())
					if err := graph.Read(s, p.Name()+" gradient", chains-1, 0, values); err != nil {
						t.Fatal(err)
					}
					all = append(all, values...)
				}
				return all
			}
			for _, chains := range []int{1, 2} {
				want := gradients(apart{tensor.NewHost(2)}, chains)
				for _, threads := range []int{1, 2, 5} {
					if !slices.Equal(gradients(tensor.NewHost(threads), chains), want) {
						t.Errorf("%s, %d images, %d chains, %d threads: other gradients than launch by launch", name, batch, chains, threads)
					}
				}
			}
		}
	}
}
