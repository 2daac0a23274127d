package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/serve"
)

// serveFlags are the flags of serve.
type serveFlags struct {
	device         deviceFlags
	options        serve.Options
	address        string
	guarantees     guaranteeFlags
	withoutDamaged bool
	accessLog      string
}

// tokenVariable is the environment variable for the bearer token.
const tokenVariable = "POLLEN_TOKEN"

func serveCommand(c *console) *cobra.Command {
	var s serveFlags
	command := &cobra.Command{
		Use: "serve [NAME[:VERSION]=]RUN...", Short: "Serve predictions over HTTP, with a web page",
		Long: "Serves the answers of predict over HTTP. POST /predict takes an image, a form with files, or JSON; GET / is a page for\n" +
			"dropping images on; GET /run describes the run, /health reports readiness, /metrics has figures for Prometheus. Paths below\n" +
			"/v2 follow the Open Inference Protocol of KServe and Triton; GET /openapi.json describes all of them for client generators.\n\n" +
			"Several runs are served by name and version, as in flowers:2=runs/flowers-b. By default a run has the name of its\n" +
			"directory and version 1. If a directory is not a run but contains runs, each is served as a version, by its name.\n" +
			"Requests without a version get the last one; /predict uses the first model.\n\n" +
			"Ctrl-C stops the server after the pending requests. SIGHUP reloads the directories with their samples and calibrations,\n" +
			"the certificate and the token, without losing a request, and reopens the access log.\n\n" +
			"By default only programs on this machine can connect. To listen on other addresses, use TLS and a token, which can also\n" +
			"be given in the environment variable POLLEN_TOKEN; GET /health and the page's files need no token. See docs/serving.md.",
		Example: "  pollen serve runs/flowers\n  curl --data-binary @rose.jpg localhost:8080/predict\n" +
			"  pollen serve flowers=runs/flowers birds:1=runs/birds-a birds:2=runs/birds-b\n" +
			"  pollen serve runs/flowers --address :8443 --tls-cert cert.pem --tls-key key.pem --token-file token",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return usage("pollen: serve needs the directory of a run")
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			if err := config.RejectZeros(command.Flags()); err != nil {
				return err
			}
			return s.run(command.Context(), arguments, c)
		},
	}
	f := command.Flags()
	f.StringVar(&s.address, "address", "localhost:8080", "host and port to listen on; \":8080\" listens on all interfaces, \"0.0.0.0:8080\" on those of IPv4")
	s.guarantees.bindLevels(f)
	s.guarantees.bind(f)
	f.IntVar(&s.options.Batch, "batch", 0, "images per forward pass, even if a request has fewer; more raise throughput and latency (default 2)")
	f.IntVar(&s.options.MaxBody, "max-body", 0, "maximum bytes of a request (default 16 MiB)")
	f.IntVar(&s.options.MaxPixels, "max-pixels", 0, "maximum pixels of an image (default 25 million)")
	f.DurationVar(&s.options.Timeout, "timeout", 0, "maximum time to receive a request, and again to answer it (default 20s)")
	f.StringVar(&s.options.TLSCert, "tls-cert", "", "PEM file of the certificate; the server then uses HTTPS")
	f.StringVar(&s.options.TLSKey, "tls-key", "", "PEM file of the certificate's key")
	f.StringVar(&s.options.TokenFile, "token-file", "", "file with the bearer token that requests must have")
	f.StringSliceVar(&s.options.Hosts, "host", nil, "name by which clients reach the server; can be repeated (default: localhost on a loopback\n"+
		"address, elsewhere any)")
	f.StringSliceVar(&s.options.CORSOrigins, "cors-origin", nil, "origin, such as https://viewer.example.org, whose pages may use the server; can be repeated")
	f.StringVar(&s.accessLog, "access-log", "", "file to append a JSON record of each request to; \"-\" is the standard output")
	s.device.bind(f)
	bindWithoutDamaged(f, &s.withoutDamaged)
	s.options.Report = func(err error) { c.remark("%s", named(err)) }
	return command
}

func (s *serveFlags) run(ctx context.Context, arguments []string, c *console) error {
	hangups := interrupt.Hangups(ctx)
	if err := s.takeToken(); err != nil {
		return err
	}
	log, err := openAccessLog(s.accessLog, c)
	if err != nil {
		return err
	}
	defer log.Close()
	s.options.AccessLog = log.logger()
	opened, err := s.device.open(c)
	if err != nil {
		return err
	}
	defer opened.Close()
	options, err := s.guarantees.options()
	if err != nil {
		return err
	}
	options = append(append(options, withoutDamagedIf(s.withoutDamaged)...), bayes.WithDevice(opened), bayes.WithObserver(c.observer("serve")))
	open := func() ([]serve.Model, error) {
		dirs, err := modelDirs(arguments)
		if err != nil {
			return nil, err
		}
		return openModels(dirs, options)
	}
	listener, err := s.listen() // before the models are loaded, which may take minutes
	if err != nil {
		return err
	}
	defer listener.Close()
	server, err := s.newServer(open, c)
	if err != nil {
		return err
	}
	defer server.Close()
	memory.CollectLess(ctx)
	s.remarkExposed(listener.Addr(), c)
	c.remark("serving %s at %s://%s; stop with Ctrl-C", strings.Join(arguments, ", "), s.scheme(), reachable(listener.Addr()))
	ended := make(chan error, 1)
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- server.Serve(serving, listener) }()
	for {
		select {
		case err := <-ended:
			if err == nil {
				c.remark("pollen: stopped; pending requests were answered")
			}
			return err
		case <-hangups:
			if err := s.reload(server, open, log, c); err != nil {
				c.remark("pollen: reload: %s; serving as before", strings.TrimPrefix(err.Error(), "pollen: "))
			}
		}
	}
}

// newServer returns a server of the models that open opens, and remarks on their samples and
// guarantees.
func (s *serveFlags) newServer(open func() ([]serve.Model, error), c *console) (*serve.Server, error) {
	models, err := open()
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if err := remarkUnfinished(m.Run, c); err != nil {
			return nil, err
		}
	}
	server, err := serve.New(models, s.options)
	if err != nil {
		return nil, err
	}
	remarkVersions(models, c)
	for _, m := range models {
		if err := s.guarantees.remark(m.Run, c); err != nil {
			server.Close()
			return nil, err
		}
	}
	return server, nil
}

// reload opens the access log and the models again.
func (s *serveFlags) reload(server *serve.Server, open func() ([]serve.Model, error), log *accessLog, c *console) error {
	if err := log.reopen(); err != nil {
		return err
	}
	models, err := open()
	if err != nil {
		return err
	}
	before := server.Models()
	if err := server.Reload(models); err != nil {
		return err
	}
	remarkVersions(models, c)
	for _, m := range models {
		if err := s.guarantees.remark(m.Run, c); err != nil { // which does not concern the answers
			c.remark("%s", named(err))
		}
	}
	c.remark("pollen: reloaded%s", changes(before, server.Models()))
	return nil
}

// listen listens on the address. Its errors name the flag.
func (s *serveFlags) listen() (net.Listener, error) {
	if _, _, err := net.SplitHostPort(s.address); err != nil {
		return nil, usage("pollen: serve: --address must be a host and port, such as localhost:8080 or :8080, got %q", s.address)
	}
	listener, err := net.Listen(networkOf(s.address), s.address)
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // without the address
	}
	return listener, errors.Wrapf(err, "pollen: serve: --address %s", s.address)
}

// networkOf returns the network to listen on. An IPv4 address that stands for all interfaces means
// IPv4 only, for which net.Listen would also listen on IPv6.
func networkOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// reachable returns an address that a program on this machine can connect to: localhost instead of
// all interfaces.
func reachable(at net.Addr) string {
	if tcp, is := at.(*net.TCPAddr); is && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return at.String()
}

// named returns the text of an error that begins with "serve: ", once.
func named(err error) string { return "serve: " + strings.TrimPrefix(err.Error(), "serve: ") }

// changes describes a reload, as in " birds version 4: 48 samples; removed birds version 1;
// unchanged models: 2".
func changes(before, after []serve.ModelEntry) string {
	var changed, removed []string
	for _, m := range after {
		if !slices.Contains(before, m) {
			changed = append(changed, m.String())
		}
	}
	for _, m := range before {
		if !slices.ContainsFunc(after, func(other serve.ModelEntry) bool { return other.Name == m.Name && other.Version == m.Version }) {
			removed = append(removed, fmt.Sprintf("%s version %s", m.Name, m.Version))
		}
	}
	text := ""
	if len(changed) > 0 {
		text = " " + strings.Join(changed, ", ")
	}
	if len(removed) > 0 {
		text += "; removed " + strings.Join(removed, ", ")
	}
	if same := len(after) - len(changed); same > 0 {
		text += fmt.Sprintf("; unchanged models: %d", same)
	}
	return text
}

// takeToken takes the token from the environment. An empty one is an error, not a server that is
// open to all.
func (s *serveFlags) takeToken() error {
	token, given := os.LookupEnv(tokenVariable)
	switch {
	case given && s.options.TokenFile != "":
		return usage("pollen: --token-file and the environment variable %s exclude each other", tokenVariable)
	case given && token == "":
		return usage("pollen: the environment variable %s must be a token, is empty", tokenVariable)
	}
	s.options.Token = token
	return nil
}

func (s *serveFlags) scheme() string {
	if s.options.TLSCert != "" {
		return "https"
	}
	return "http"
}

// remarkExposed warns about a server that others can reach without a token, or with one that they
// can read.
func (s *serveFlags) remarkExposed(at net.Addr, c *console) {
	tcp, is := at.(*net.TCPAddr)
	if !is || tcp.IP.IsLoopback() {
		return
	}
	reached := "reach " + at.String()
	if tcp.IP.IsUnspecified() {
		reached = fmt.Sprintf("connect to port %d of this machine", tcp.Port)
	}
	switch protected := s.options.Token != "" || s.options.TokenFile != ""; {
	case !protected:
		c.remark("anyone who can %s can use this server: --token-file protects it, --tls-cert encrypts what is sent", reached)
	case s.options.TLSCert == "":
		c.remark("the token is sent unencrypted: use --tls-cert, or a proxy with TLS")
	}
}
