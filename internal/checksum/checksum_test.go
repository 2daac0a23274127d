package checksum

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

type page struct {
	Hashes map[string]string `json:"hashes"`
	Text   string            `json:"text"`
}

func withChecksum(t *testing.T, indent string) []byte {
	t.Helper()
	content, err := JSON(page{map[string]string{"sha256": strings.Repeat("a", 64)}, "hello"}, indent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(content, len(content)); err != nil {
		t.Fatal(err)
	}
	return content
}

// The checksum is the SHA-256 that any program computes with the digits replaced by zeros.
func TestChecksumIsWhatOthersCompute(t *testing.T) {
	content := withChecksum(t, "")
	var p struct {
		page
		Sum string `json:"sha256"`
	}
	if err := json.Unmarshal(content, &p); err != nil {
		t.Fatal(err)
	}
	plain := strings.Replace(string(content), p.Sum, strings.Repeat("0", 64), 1)
	want := sha256.Sum256([]byte(plain))
	if p.Sum != hex.EncodeToString(want[:]) {
		t.Errorf("sum %s, want %x", p.Sum, want)
	}
}

func TestEveryBitCounts(t *testing.T) {
	for _, indent := range []string{"", "  "} {
		content := withChecksum(t, indent)
		for at := range content {
			for bit := range 8 {
				content[at] ^= 1 << bit
				if _, err := Check(content, len(content)); err == nil {
					t.Fatalf("bit %d of byte %d was flipped: no error", bit, at)
				}
				content[at] ^= 1 << bit
			}
		}
		for n := range content {
			if _, err := Check(content[:n], n); err == nil {
				t.Fatalf("cut at %d: no error", n)
			}
		}
	}
}

func TestWithoutAChecksum(t *testing.T) {
	for _, text := range []string{"", "{}", `{"sha256": 3}`, `{"sha256":"` + strings.Repeat("A", 64) + `"}`, `{"sha256":"`} {
		if _, err := Check([]byte(text), len(text)); errors.Cause(err) != ErrNone {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := Fill([]byte(text), len(text)); err == nil {
			t.Errorf("%q: filled", text)
		}
	}
	content := withChecksum(t, "")
	if _, err := Fill(content, len(content)); err == nil {
		t.Error("filled twice")
	}
}
