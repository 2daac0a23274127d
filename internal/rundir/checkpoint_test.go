package rundir

import (
	"testing"
)

func FuzzCheckpoint(f *testing.F) {
	small := Checkpoint{Steps: 7, HeldOut: "hash", Chains: [][]byte{{1, 2, 3}}, Measured: []Measurement{
		{"measured", make([]float64, 4)}, {"trace", []float64{1, 1, 0.5}},
	}}
	content, err := small.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add(content[:len(content)-1])
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := decodeCheckpoint(content)
		if err != nil {
			return
		}
		size := 0
		for _, chain := range c.Chains {
			size += len(chain)
		}
		for _, m := range c.Measured {
			size += 8 * len(m.Values)
		}
		if size > len(content) {
			t.Fatalf("%d bytes of tensors in %d", size, len(content))
		}
	})
}
