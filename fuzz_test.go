package pollen

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/maruel/safetensors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/tensor"
)

func FuzzManifest(f *testing.F) {
	for _, path := range []string{"testdata/oldrun/manifest.json", "testdata/oldhalf/manifest.json", "testdata/format2/finished/manifest.json"} {
		content, err := os.ReadFile(path)
		must(f, err)
		f.Add(content)
		f.Add(bytes.Replace(content, []byte(`"format": 2`), []byte(`"format": 3`), 1))
		f.Add(content[:len(content)/2])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := parseManifest(content)
		if err != nil || m.check() != nil {
			return
		}
		again, err := json.Marshal(m)
		must(t, err)
		if m.Format == 0 {
			again = bytes.Replace(again, []byte(`"format":0`), []byte(`"format":2`), 1)
		}
		n, err := parseManifest(again)
		if err != nil || n.check() != nil {
			t.Fatalf("what was read cannot be read again: %v %v: %s", err, n.check(), again)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	old, err := os.ReadFile("testdata/format2/half/checkpoint/state.safetensors")
	must(f, err)
	f.Add(old)
	small := safetensors.File{Metadata: map[string]string{stepsKey: "7", checksum.Key: checksum.Blank}, Tensors: []safetensors.Tensor{
		{Name: chainName(0), DType: safetensors.U8, Shape: []uint64{3}, Data: []byte{1, 2, 3}},
		{Name: measuredTensor, DType: safetensors.F64, Shape: []uint64{4}, Data: make([]byte, 32)},
		{Name: traceTensor, DType: safetensors.F64, Shape: []uint64{3}, Data: tensor.Bytes([]float64{1, 1, 0.5})},
	}}
	var content bytes.Buffer
	must(f, small.Serialize(&content))
	_, err = checksum.Close(content.Bytes(), checksum.Header(content.Bytes()))
	must(f, err)
	f.Add(content.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, format := range []int{plainFormat, sealedFormat} {
			c, err := parseCheckpoint(content, format)
			if err != nil {
				continue
			}
			if format == sealedFormat && !bytes.Contains(content, []byte(`"sha256":"`)) {
				t.Fatal("a checkpoint without a seal was read")
			}
			size := 0
			for _, part := range c.Tensors {
				size += len(part.Data)
			}
			if size > len(content) {
				t.Fatalf("%d bytes of tensors in %d", size, len(content))
			}
		}
		for at := 0; at+8 <= min(len(content), 800); at += 80 {
			s := newSeries(10)
			state := make([]float64, (len(content)-at)/8)
			copy(tensor.Bytes(state), content[at:])
			if s.restore(state) == nil && len(s.values) > s.most {
				t.Fatalf("a trace of %d values", len(s.values))
			}
		}
	})
}
