package kernels

import (
	"strings"
	"testing"
)

// FuzzPTX parses the signatures of kernels from arbitrary text.
func FuzzPTX(f *testing.F) {
	f.Add(".version 7.8\n.target sm_70\n\n.visible .entry relu_f32(\n\t.param .u64 x\n)\n.maxntid 256, 1, 1\n{\n}\n")
	files, err := Files()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(files[0].Text[:min(len(files[0].Text), 6000)])
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse("fuzz", text)
		if err != nil {
			if !strings.Contains(err.Error(), "kernels: ") {
				t.Fatalf("error %q does not say whose", err)
			}
			return
		}
		if len(file.Entries) == 0 {
			t.Fatal("no entries, and no error")
		}
		for _, e := range file.Entries {
			if e.Threads <= 0 || len(e.Parameters) > len(text) {
				t.Fatalf("entry %+v", e)
			}
		}
	})
}
