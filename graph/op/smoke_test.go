package op

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

func initial(scale float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, v []float64) {
		random.Normals(v, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
		for i := range v {
			v[i] *= scale
		}
	}
}

func TestSmoke(t *testing.T) {
	b := graph.New(tensor.Float64)
	images := b.Data("images", tensor.Uint8, 50, 1, 12, 12)
	labels := b.Data("labels", tensor.Uint8, 50)
	batch := Batch{Size: 8, Shuffled: true}
	x := b.Apply(GatherImages{batch, 0.5, 0.25}, images, b.Header())
	y := b.Apply(GatherLabels{batch}, labels, b.Header())
	w1 := b.Parameter("w1", initial(.2), 4, 1, 3, 3)
	b1 := b.Parameter("b1", initial(.1), 4)
	w2 := b.Parameter("w2", initial(.1), 10, 4*25)
	b2 := b.Parameter("b2", nil, 10)
	h := b.Apply(Conv2D{Square(1), Square(0), Square(1), false, false}, x, w1)
	h = b.Apply(BiasAdd{}, h, b1)
	h = b.Apply(ReLU{}, h)
	h = b.Apply(MaxPool2D{Square(2), Square(2), Square(0)}, h)
	h = b.Apply(Flatten(h), h)
	h = b.Apply(MatMul{TransposeB: true}, h, w2)
	h = b.Apply(BiasAdd{}, h, b2)
	loss := b.Apply(CrossEntropy{}, h, y)
	g := b.Gradients(loss, w1, b1, w2, b2)
	b.Record("loss", loss)
	b.Record("accuracy", b.Apply(Accuracy{}, h, y))
	for i, n := range g {
		b.Output([]string{"dw1", "db1", "dw2", "db2"}[i], n)
	}
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.Dump())
	host := tensor.NewHost(2)
	defer host.Close()
	s, err := p.Load(host, graph.LoadOptions{Seed: 3, Chains: 3})
	if err != nil {
		t.Fatal(err)
	}
	pix, lab := make([]byte, 50*144), make([]byte, 50)
	for i := range pix {
		pix[i] = byte(i * 37)
	}
	for i := range lab {
		lab[i] = byte(i % 10)
	}
	graph.Write(s, "images", 0, 0, pix)
	graph.Write(s, "labels", 0, 0, lab)
	if err := s.Run(4); err != nil {
		t.Fatal(err)
	}
	in, err := graph.Interpret(b, graph.LoadOptions{Seed: 3, FirstChain: 2})
	if err != nil {
		t.Fatal(err)
	}
	d, _ := in.Input("images")
	copy(d.Data().([]byte), pix)
	d, _ = in.Input("labels")
	copy(d.Data().([]byte), lab)
	for range 4 {
		if err := in.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"dw1", "db1", "dw2", "db2"} {
		want, err := in.Value(g[i])
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(want))
		if err := graph.Read(s, name, 2, 0, got); err != nil {
			t.Fatal(err)
		}
		for j := range got {
			if math.Abs(got[j]-want[j]) > 1e-12 {
				t.Fatal(name, j, got[j], want[j])
			}
		}
	}
	l, _ := in.Value(loss)
	t.Log(l, s.Metric(2, 0, 3))
	if n := testing.AllocsPerRun(10, func() { s.Run(1) }); n > 0 {
		t.Error("allocs", n)
	}
}
