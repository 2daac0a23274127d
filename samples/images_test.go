package samples_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Images with more channels than one op normalises are normalised like others.
func TestInputOfManyChannels(t *testing.T) {
	const n, channels, plane = 3, 6, 4
	images := samples.Images{Channels: channels, Height: 2, Width: 2, Pixels: make([]byte, n*channels*plane)}
	for c := range channels {
		images.Mean, images.Std = append(images.Mean, 0.1*float64(c)), append(images.Std, 0.2+0.1*float64(c))
	}
	for i := range images.Pixels {
		images.Pixels[i] = byte(i * 3)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	b := graph.New(tensor.Float32)
	b.Output("x", images.Input(b, op.Batch{Size: n}, n))
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.Load(host, graph.LoadOptions{Chains: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := images.Write(s); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(1); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, len(images.Pixels))
	if err := graph.Read(s, "x", 0, 0, got); err != nil {
		t.Fatal(err)
	}
	for i, v := range images.Pixels {
		c := i / plane % channels
		if want := (float64(v)/255 - images.Mean[c]) / images.Std[c]; math.Abs(float64(got[i])-want) > 1e-5 {
			t.Fatalf("value %d of channel %d is %v, want %v", i, c, got[i], want)
		}
	}
}
