package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pkg/errors"
)

// Key is the name of the JSON member that is the checksum.
const Key = "sha256"

// Blank is the member's value before Fill: zeros.
var Blank = strings.Repeat("0", digits)

const digits = 2 * sha256.Size

// ErrNone is the cause of the error of a file without a checksum.
var ErrNone = errors.New("it has no checksum")

// Fill computes the checksum of content and writes its digits into the last member Key within the
// first within bytes, which must be Blank. It returns the digits.
func Fill(content []byte, within int) (string, error) {
	at, ok := find(content[:within])
	if !ok || string(content[at:at+digits]) != Blank {
		return "", errors.New("checksum: there is no blank checksum to fill in")
	}
	sum := sumOf(content, at)
	copy(content[at:], sum)
	return sum, nil
}

// Check compares content with the last checksum within the first within bytes, and returns its
// digits. The error's cause is ErrNone if there is none.
func Check(content []byte, within int) (string, error) {
	at, ok := find(content[:within])
	if !ok {
		return "", ErrNone
	}
	got, want := sumOf(content, at), string(content[at:at+digits])
	if got != want {
		return "", errors.Errorf("it was changed: its SHA-256 is %s, and was %s when it was written", got, want)
	}
	return want, nil
}

// sumOf returns the SHA-256 of content with zeros instead of the digits at at.
func sumOf(content []byte, at int) string {
	hash := sha256.New()
	hash.Write(content[:at])
	hash.Write([]byte(Blank))
	hash.Write(content[at+digits:])
	return hex.EncodeToString(hash.Sum(nil))
}

// find returns where the digits of the last checksum begin.
func find(text []byte) (int, bool) {
	at := bytes.LastIndex(text, []byte(`"`+Key+`":`))
	if at < 0 {
		return 0, false
	}
	at += len(Key) + 3
	if at < len(text) && text[at] == ' ' {
		at++
	}
	end := at + 1 + digits
	if end >= len(text) || text[at] != '"' || text[end] != '"' {
		return 0, false
	}
	for _, c := range text[at+1 : end] {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return 0, false
		}
	}
	return at + 1, true
}
