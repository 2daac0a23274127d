package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/pkg/errors"
)

// secrets are the secrets that Reload reads again: the certificate and the hash of the token.
type secrets struct {
	certificate *tls.Certificate // nil without one
	token       *[sha256.Size]byte
}

// maxSecretFile is the largest size in bytes of a file with a certificate, a key or a token.
const maxSecretFile = 1 << 20

// tokenPattern is the syntax of a bearer token, RFC 6750.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// minToken is the minimum number of characters of a token: a shorter one can be guessed.
const minToken = 16

// load reads the certificate and the token. The error is an OptionError.
func (o *Options) load() (*secrets, error) {
	s := &secrets{}
	if o.TLSCert != "" {
		chain, err := readSmall(o.TLSCert)
		if err != nil {
			return nil, invalid("TLSCert", "%v", err)
		}
		key, err := readSmall(o.TLSKey)
		if err != nil {
			return nil, invalid("TLSKey", "%v", err)
		}
		pair, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, invalid("TLSCert", "%s and %s must be a certificate and its key: %v", o.TLSCert, o.TLSKey, err)
		}
		s.certificate = &pair
	}
	token, option := o.Token, "Token"
	if o.TokenFile != "" {
		content, err := readSmall(o.TokenFile)
		if err != nil {
			return nil, invalid("TokenFile", "%v", err)
		}
		if token, option = strings.TrimSpace(string(content)), "TokenFile"; token == "" {
			return nil, invalid(option, "%s must have a token, is empty", o.TokenFile)
		}
	}
	if token == "" {
		return s, nil
	}
	if len(token) < minToken || !tokenPattern.MatchString(token) {
		return nil, invalid(option, "must be a token of at least %d letters, digits and -._~+/=, got %d characters", minToken, len(token))
	}
	hash := sha256.Sum256([]byte(token))
	s.token = &hash
	return s, nil
}

// readSmall reads a regular file of limited size.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.Errorf("%s must be a regular file, which can be read again", path)
	case info.Size() > maxSecretFile:
		return nil, errors.Errorf("%s must have at most %d bytes, got %d", path, maxSecretFile, info.Size())
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	return io.ReadAll(io.LimitReader(opened, maxSecretFile))
}

// authorized reports whether a request has the token, or no token is required. Its time does not
// depend on how many characters of the token are right.
func (s *secrets) authorized(r *http.Request) bool {
	if s.token == nil {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], s.token[:]) == 1
}
