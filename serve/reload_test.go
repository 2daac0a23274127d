package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

// writeCertificate writes a self-signed certificate for a name, and its key.
func writeCertificate(t testing.TB, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	check(err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, &template, &template, &private.PublicKey, private)
	check(err)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	check(err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	check(os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	check(os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), 0o600))
	return cert, key
}

// serving serves on a local port until the test ends, and returns the port's address.
func serving(t testing.TB, s *Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// trusting is a client that trusts the certificate in a file.
func trusting(t testing.TB, cert string, limit uint16) *http.Client {
	t.Helper()
	content, err := os.ReadFile(cert)
	check(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		t.Fatalf("%s has no certificate", cert)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "flowers.example.org", MinVersion: tls.VersionTLS10, MaxVersion: limit}, ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestTLS: a server with a certificate speaks TLS 1.2 and 1.3, and nothing else.
func TestTLS(t *testing.T) {
	cert, key := writeCertificate(t, t.TempDir(), "flowers.example.org")
	address := serving(t, newTest(t, Options{TLSCert: cert, TLSKey: key, Timeout: time.Second, Report: func(error) {}}))
	for version, accepted := range map[uint16]bool{tls.VersionTLS13: true, tls.VersionTLS12: true, tls.VersionTLS11: false} {
		response, err := trusting(t, cert, version).Get("https://" + address + "/health")
		if (err == nil) != accepted || err == nil && (response.StatusCode != 200 || response.TLS.Version != version || response.ProtoMajor != 1) {
			t.Errorf("%s: %v (%v)", tls.VersionName(version), response, err)
		}
		if err == nil {
			response.Body.Close()
		}
	}
	silent, err := net.Dial("tcp", address)
	check(err)
	defer silent.Close()
	check(silent.SetDeadline(time.Now().Add(10 * time.Second)))
	response, err := http.Get("http://" + address + "/health")
	check(err)
	defer response.Body.Close()
	if content, err := io.ReadAll(response.Body); response.StatusCode != 400 || !strings.Contains(string(content), "HTTPS") {
		t.Errorf("without TLS: %d %s (%v)", response.StatusCode, content, err)
	}
	if n, err := silent.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a client that does not begin is not disconnected: %v", err)
	}
}

// other is a run on the patterns with another seed, and n training images.
func other(t *testing.T, data *datasets.Dataset) *bayes.Run {
	t.Helper()
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Batch: 30, Epochs: 2, Samples: 2}
	run, err := bayes.Fit(t.Context(), spec, &datasets.Splits{Train: data}, filepath.Join(t.TempDir(), "other"))
	check(err)
	return run
}

// TestReload: a server takes over another run, certificate and token without losing a request,
// and keeps the old ones if one of the new ones is wrong.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "flowers.example.org")
	token := filepath.Join(dir, "token")
	check(os.WriteFile(token, []byte(testToken), 0o600))
	s := newTest(t, Options{TLSCert: cert, TLSKey: key, TokenFile: token, Report: func(error) {}})
	address := serving(t, s)
	first := trusting(t, cert, 0)
	predict := func(client *http.Client, token string) (code int, digest string) {
		r, err := http.NewRequest("POST", "https://"+address+"/predict", bytes.NewReader(pngOf(theTest.Image(0))))
		check(err)
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		io.Copy(io.Discard, response.Body)
		return response.StatusCode, response.Header.Get(digestHeader)
	}
	before, err := theRun.Digest()
	check(err)
	next := other(t, patterns(90, 4))
	after, err := next.Digest()
	check(err)
	expect := func(what string, client *http.Client, token string, code int, digest string) {
		t.Helper()
		if gotCode, got := predict(client, token); gotCode != code || got != digest {
			t.Errorf("%s: status %d, digest %s, want %d, %s", what, gotCode, got, code, digest)
		}
	}
	expect("at first", first, testToken, 200, before)

	small := patterns(90, 4)
	small.ClassNames = []string{"across", "along", "other"}
	if err := s.Reload([]Model{{Name: "patterns", Run: other(t, small)}}); err == nil || !strings.Contains(err.Error(), "must have the classes") {
		t.Errorf("another run's classes: %v", err)
	}
	check(os.WriteFile(token, nil, 0o600))
	if err := s.Reload([]Model{{Name: "patterns", Run: next}}); err == nil || !strings.Contains(err.Error(), "must have a token, is empty") {
		t.Errorf("an empty token: %v", err)
	}
	expect("after errors", first, testToken, 200, before)

	// Requests meanwhile are answered by one run or the other.
	var asking sync.WaitGroup
	stop := make(chan bool)
	for range 4 {
		asking.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if code, digest := predict(first, testToken); code != 200 || digest != before && digest != after {
					t.Errorf("during a reload: %d, %s", code, digest)
				}
			}
		})
	}
	check(os.WriteFile(token, []byte(testToken+"\n"), 0o600))
	for _, run := range []*bayes.Run{next, theRun, next} {
		check(s.Reload([]Model{{Name: "patterns", Run: run}}))
	}
	close(stop)
	asking.Wait()
	expect("another run", first, testToken, 200, after)
	if info := s.first().info(); info.Samples != 3 || info.MaxImages != 64 || info.Network != "mlp-4" {
		t.Errorf("the other run is %+v", info)
	}

	const newToken = testToken + "-2"
	check(os.WriteFile(token, []byte(newToken), 0o600))
	writeCertificate(t, dir, "flowers.example.org")
	check(s.Reload([]Model{{Name: "patterns", Run: next}}))
	expect("the token before", first, testToken, 401, "")
	expect("the new token, by a connection that is open", first, newToken, 200, after)
	first.CloseIdleConnections()
	if code, text := predict(first, newToken); code != 0 || !strings.Contains(text, "certificate") {
		t.Errorf("the certificate before: %d %s", code, text)
	}
	expect("the new certificate", trusting(t, cert, 0), newToken, 200, after)

	check(s.Close())
	if err := s.Reload([]Model{{Name: "patterns", Run: next}}); err == nil || !strings.Contains(err.Error(), "closing") {
		t.Errorf("after Close: %v", err)
	}
}

// A reload does not wait forever for a prediction that hangs.
func TestReloadWhileStuck(t *testing.T) {
	started, end := make(chan bool), make(chan bool)
	s, _ := newFake(t, Options{Timeout: 20 * time.Millisecond, Report: func(error) {}}, func(pixels []byte) ([]bayes.Answer, error) {
		started <- true
		<-end
		return ones(pixels)
	})
	go s.first().queue.expect().submit(t.Context(), 1, theTest.Image(0))
	<-started
	if err := s.Reload([]Model{{Name: "patterns", Run: theRun}}); err == nil || !strings.Contains(err.Error(), "a prediction has not ended after 20ms") {
		t.Errorf("error %v", err)
	}
	close(end)
}
