package checksum

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pkg/errors"
)

// Key is the name of the JSON member that is the seal.
const Key = "sha256"

// Blank is the member's value before Close: zeros.
var Blank = strings.Repeat("0", digits)

const digits = 2 * sha256.Size

// ErrNone is the cause where a file has no seal.
var ErrNone = errors.New("it has no checksum")

// Close computes the checksum of content and puts it into the last seal within the first that many
// bytes, which must be blank. It returns the digits.
func Close(content []byte, within int) (string, error) {
	at, ok := find(content[:within])
	if !ok || string(content[at:at+digits]) != Blank {
		return "", errors.New("checksum: there is no blank seal to close")
	}
	sum := sumOf(content, at)
	copy(content[at:], sum)
	return sum, nil
}

// Check compares content with the last seal within the first that many bytes, and returns its
// digits. The error's cause is ErrNone where there is none.
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

// sumOf is the SHA-256 of content with zeros in the place of the digits.
func sumOf(content []byte, at int) string {
	hash := sha256.New()
	hash.Write(content[:at])
	hash.Write([]byte(Blank))
	hash.Write(content[at+digits:])
	return hex.EncodeToString(hash.Sum(nil))
}

// find is where the digits of the last seal begin.
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
