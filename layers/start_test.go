package layers

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestZooStartsAsItEverDid checks the parameters' names, their order and their initial bits: if
// these changed, stored samples would be read into other parameters, and a run could not be
// repeated.
func TestZooStartsAsItEverDid(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	for name, want := range map[string]uint32{
		"lenet": 0x10f25fe0, "lenet-small": 0x9e4bce0, "mnist-64-64-256": 0x4cd5b47f, "mlp-40-30": 0xa71cdf76,
		"resnet20-frn": 0xec39e79b, "resnet20-frn-silu": 0xec39e79b, "resnet20-frn-x1": 0xec39e79b, "cnn": 0xe1098750,
	} {
		network, err := New(name, 10)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New(tensor.Float32)
		b.Output("logits", network.Apply(b, b.Data("input", tensor.Float32, 1, 1, 28, 28)))
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		session, err := program.Load(host, graph.LoadOptions{Seed: 7, FirstChain: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		sum := crc32.NewIEEE()
		for _, parameter := range b.Parameters() {
			sum.Write([]byte(parameter.Name()))
			values := make([]float32, graph.ShapeOf(parameter).Elements())
			if err := session.ReadFloats(parameter.Name(), 0, values); err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
			}
		}
		if got := sum.Sum32(); got != want {
			t.Errorf("%s: checksum of names and values is %#x, want %#x", name, got, want)
		}
	}
}
