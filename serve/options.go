package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
)

// Options configures a Server. The zero value has suitable defaults.
type Options struct {
	Batch int           // images per forward pass, also for smaller requests, see bayes.Run.Predictor; 0 is 2
	Wait  time.Duration // longest time that a batch waits for the images of other requests; 0 is 2 ms, negative is none
	Queue int           // maximum number of waiting images; 0 is 512

	MaxImages int // maximum number of images of a request; 0 is 64
	MaxBody   int // maximum bytes of a request; 0 is 16 MiB
	Memory    int // maximum bytes of bodies and images of all concurrent requests; 0 is 256 MiB

	// MaxPixels is the maximum number of pixels of an image; 0 is 25 million, and
	// datasets.MaxPixels is the largest value. It also determines the memory for decoding, over
	// all requests. All large images together have 36 bytes per pixel, or 16 bytes per pixel and
	// 256 MiB if this is more; each takes as much as datasets.Measure returns. Small images have
	// 16 MiB each, for up to two per processor.
	//
	// If less memory is available, Memory, MaxBody and the memory for decoding are reduced,
	// together to half of it, and Report gets an error with the numbers.
	MaxPixels int

	// Timeout is the maximum time to receive a request, and again to answer it; 0 is 20 s. Serve
	// closes the connection after it. When Serve ends, pending requests also have this time to
	// finish.
	Timeout time.Duration
	// DecodeTimeout is the maximum time to decode an image, after which it is an error; 0 is
	// half of Timeout, and at least 1 s. A decoder that has not stopped after twice this time is
	// stuck.
	DecodeTimeout time.Duration

	// TLSCert and TLSKey are PEM files of a certificate chain and its private key. If they are
	// given, Serve answers by HTTPS only, with TLS 1.2 or later. Reload reads them again.
	TLSCert, TLSKey string
	// Token is the bearer token that requests must have, in their header "Authorization: Bearer
	// TOKEN", except those for GET /health and the files of the web page; "" is none. TokenFile is
	// a file that has it, which Reload reads again. A token has 16 or more letters, digits and
	// -._~+/=.
	Token, TokenFile string
	// Hosts are the names by which clients reach the server, such as "flowers.example.org". If any
	// are given, requests must have one of them in their header Host, or localhost, or an IP
	// address. If Serve listens on a loopback address, Host must be one of the names, localhost or
	// a loopback address, even without Hosts: otherwise any web page could read answers by a name
	// that it resolves to 127.0.0.1.
	Hosts []string
	// CORSOrigins are the origins, such as "https://viewer.example.org", whose web pages may send
	// requests and read the answers; "*" is any. Other pages may not.
	CORSOrigins []string
	// AccessLog, if not nil, gets a record of each request.
	AccessLog *slog.Logger

	// Report, if not nil, gets server errors: failed predictions, panics, and errors of the HTTP
	// server. It is called from several goroutines.
	Report func(error)
}

// OptionError is the error for an invalid option.
type OptionError struct {
	Option  string // the field of Options
	Problem string // "must be ..., got ..."
}

// Error names the option.
func (e *OptionError) Error() string { return "serve: options: " + e.Option + ": " + e.Problem }

func invalid(option, format string, values ...any) error {
	return errors.WithStack(&OptionError{option, fmt.Sprintf(format, values...)})
}

// resolve returns the options with defaults filled in, or an error for invalid ones.
func (o Options) resolve() (Options, error) {
	for _, field := range []struct {
		name            string
		value           *int
		standard, limit int
	}{
		{"Batch", &o.Batch, 2, 1 << 16},
		{"Queue", &o.Queue, 512, 1 << 20},
		{"MaxImages", &o.MaxImages, 64, 1 << 16},
		{"MaxBody", &o.MaxBody, 16 << 20, 1 << 30},
		{"MaxPixels", &o.MaxPixels, 25_000_000, datasets.MaxPixels},
		{"Memory", &o.Memory, 256 << 20, 1 << 40},
	} {
		if *field.value == 0 {
			*field.value = field.standard
		}
		if *field.value < 1 || *field.value > field.limit {
			return o, invalid(field.name, "must be 1 to %d, got %d", field.limit, *field.value)
		}
	}
	o.Wait = cmp.Or(o.Wait, 2*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, 20*time.Second)
	o.DecodeTimeout = cmp.Or(o.DecodeTimeout, max(o.Timeout/2, time.Second))
	switch {
	case o.Timeout < 0:
		return o, invalid("Timeout", "must be positive, got %v", o.Timeout)
	case o.DecodeTimeout < 0:
		return o, invalid("DecodeTimeout", "must be positive, got %v", o.DecodeTimeout)
	case o.MaxImages > o.Queue:
		return o, invalid("MaxImages", "must be at most Queue, %d, got %d", o.Queue, o.MaxImages)
	case o.MaxBody > o.Memory:
		return o, invalid("MaxBody", "must be at most Memory, %d, got %d", o.Memory, o.MaxBody)
	}
	if err := o.checkAccess(); err != nil {
		return o, err
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o, nil
}

// checkAccess checks the options that determine who may use the server.
func (o *Options) checkAccess() error {
	switch {
	case o.TLSCert != "" && o.TLSKey == "":
		return invalid("TLSKey", "must be given together with the certificate")
	case o.TLSCert == "" && o.TLSKey != "":
		return invalid("TLSCert", "must be given together with the key")
	case o.Token != "" && o.TokenFile != "":
		return invalid("TokenFile", "must not be given together with a token")
	}
	for _, name := range o.Hosts {
		if name == "" || strings.ContainsAny(name, "/: *") {
			return invalid("Hosts", "must be a name without scheme and port, such as flowers.example.org, got %q", name)
		}
	}
	for _, origin := range o.CORSOrigins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host) {
			return invalid("CORSOrigins", `must be an origin such as https://viewer.example.org, or "*", got %q`, origin)
		}
	}
	return nil
}
