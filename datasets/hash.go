package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// sha256Hex returns the SHA-256 of content in hexadecimal.
func sha256Hex(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

// hashOf returns a file's SHA-256.
func hashOf(path string) (string, error) {
	opened, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, opened)
	return hex.EncodeToString(hash.Sum(nil)), err
}
