package command

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/serve"
)

// An IPv4 address is listened on with IPv4 only, and the address that is printed is one to connect
// to.
func TestServeAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:8091": "tcp4", "127.0.0.1:0": "tcp4", ":8080": "tcp", "[::]:8080": "tcp", "localhost:8080": "tcp", "8080": "tcp",
	} {
		if got := networkOf(address); got != want {
			t.Errorf("networkOf(%s) = %s, want %s", address, got, want)
		}
	}
	for ip, want := range map[string]string{"0.0.0.0": "localhost:80", "::": "localhost:80", "127.0.0.1": "127.0.0.1:80", "::1": "[::1]:80"} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(ip), Port: 80}); got != want {
			t.Errorf("reachable(%s) = %s, want %s", ip, got, want)
		}
	}
	listener, err := net.Listen(networkOf("0.0.0.0:0"), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if ip := listener.Addr().(*net.TCPAddr).IP; ip.To4() == nil {
		t.Errorf("listens on %v, want IPv4", ip)
	}
}

// The error for an address that cannot be listened on names the flag.
func TestListenNamesTheFlag(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for address, want := range map[string]string{
		taken.Addr().String(): "pollen: serve: --address " + taken.Addr().String() + ": bind: ",
		"192.0.2.1:80":        "pollen: serve: --address 192.0.2.1:80: bind: ",
		"8080":                `--address must be a host and port, such as localhost:8080 or :8080, got "8080"`,
	} {
		s := serveFlags{address: address}
		listener, err := s.listen()
		if err == nil {
			listener.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", address, err, want)
		}
	}
	// The address is tried before the models are loaded.
	code, _, stderr := runInProcess("serve", filepath.Join(t.TempDir(), "missing"), "--address", taken.Addr().String())
	if code == 0 || !strings.Contains(stderr, "pollen: serve: --address ") {
		t.Errorf("serve: exit code %d: %s", code, stderr)
	}
}

// A reload reports the models that have changed.
func TestReloadChanges(t *testing.T) {
	a, b := serve.ModelEntry{Name: "a", Version: "1", Samples: 4, Digest: "x"}, serve.ModelEntry{Name: "b", Version: "1", Samples: 1, Digest: "y"}
	longer, calibrated := b, a
	longer.Samples, longer.Digest, calibrated.Digest = 2, "z", "w"
	for want, lists := range map[string][2][]serve.ModelEntry{
		"; unchanged models: 2":                        {{a, b}, {a, b}},
		" b version 1: 2 samples; unchanged models: 1": {{a, b}, {a, longer}},
		" a version 1: 4 samples; removed b version 1": {{a, b}, {calibrated}},
		" b version 1: 1 sample; unchanged models: 1":  {{a}, {a, b}},
	} {
		if got := changes(lists[0], lists[1]); got != want {
			t.Errorf("changes(%v) = %s, want %s", lists, got, want)
		}
	}
}

// An error's text has the name in front once.
func TestNamed(t *testing.T) {
	for text, want := range map[string]string{"serve: little memory": "serve: little memory", "pollen: gone": "serve: pollen: gone"} {
		if got := named(errors.New(text)); got != want {
			t.Errorf("named(%s) = %s, want %s", text, got, want)
		}
	}
}
