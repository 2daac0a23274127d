package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// The limits of each command on a hostile input. Time is processor time, because other tests may
// run at the same time; hangs that use none end with the generators' own limits.
const (
	hostileSeconds = 5
	hostileBytes   = 500e6
)

// watchVariable names the file that mainWatched appends each command's resources to.
const watchVariable = "POLLEN_TEST_WATCH"

func init() { programs["pollen-watched"] = mainWatched }

// watched has the resources that a command used.
type watched struct {
	Arguments []string
	Code      int
	Seconds   float64 // of processors
	Bytes     float64 // the largest resident memory
}

// mainWatched runs the program in a separate process, and writes the resources that it used.
func mainWatched() {
	command := exec.Command("pollen", os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // the generators end only their own child
	_ = command.Run()
	state := command.ProcessState
	usage := state.SysUsage().(*syscall.Rusage)
	w := watched{os.Args[1:], state.ExitCode(), (state.UserTime() + state.SystemTime()).Seconds(), float64(usage.Maxrss) * 1024}
	line, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	file, err := os.OpenFile(os.Getenv(watchVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	if err := file.Close(); err != nil {
		panic(err)
	}
	os.Exit(w.Code)
}

// hostileCases runs the generators of ../shared/cases/reliability, which damage a run.
type hostileCases struct {
	processes
	generators, python string
}

func newHostileCases(t *testing.T) hostileCases {
	t.Helper()
	testenv.NeedsAll(t, "hundreds of commands")
	generators, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "cases", "reliability"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(generators); err != nil {
		t.Skipf("the generators are left out: %v", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("the generators are left out: %v", err)
	}
	h := hostileCases{newProcesses(t), generators, python}
	h.want(0, "pollen", strings.Fields(
		"fit --method sgld --data notmnist --model lenet-small --validation 0.2 --batch 20 --epochs 3 --burn-in 1 --samples 4 --chains 2 --folder run"))
	if err := writeImages(h.path("pictures"), 1, 1); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs a program, whose commands are watched, and returns its output and the resources that
// each command used.
func (h hostileCases) run(program string, arguments ...string) (out string, all []watched) {
	h.t.Helper()
	log := filepath.Join(h.t.TempDir(), "log")
	command := exec.Command(program, arguments...)
	command.Dir, command.Env = h.dir, append(os.Environ(), watchVariable+"="+log, "POLLEN_DATA="+h.path("data"), "XDG_CACHE_HOME="+h.path("cache"))
	text, err := command.CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v: %s", program, err, text)
	}
	content, err := os.ReadFile(log)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(content), []byte("\n")) {
		var w watched
		if err := json.Unmarshal(line, &w); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, w)
		if w.Seconds > hostileSeconds || w.Bytes > hostileBytes {
			h.t.Errorf("%q took %.1f s and %.0f MB, at most %d s and %.0f MB are allowed", w.Arguments, w.Seconds, w.Bytes/1e6, hostileSeconds, hostileBytes/1e6)
		}
	}
	return string(text), all
}

// largest logs the most resources that a command used.
func (h hostileCases) largest(all []watched) {
	var most watched
	for _, w := range all {
		most.Seconds, most.Bytes = max(most.Seconds, w.Seconds), max(most.Bytes, w.Bytes)
	}
	h.t.Logf("%d commands, at most %.1f s and %.0f MB each", len(all), most.Seconds, most.Bytes/1e6)
}

var triesPattern = regexp.MustCompile(`(?m)^(\d+) tries, (\d+) to look at$`)

// sound lists the run directories of runs.py whose files are intact, with the reason: verify's exit
// code is 0, and predict may answer. The generator marks both.
var sound = map[string]string{
	"model-path":      "a program may have a network of that name; a note says that the samples were not tried",
	"model-up":        "the same",
	"model-neg":       "the same",
	"resnet-huge":     "the same",
	"resnet-nan":      "the same",
	"height-1e9":      "the same, for lack of memory",
	"height-2^62":     "the same",
	"classes-html":    "names may have any letters, and pages escape them",
	"classes-escape":  "the same, and terminals get no escapes",
	"name-html":       "the same",
	"parts-good":      "another run's directory",
	"format-1":        "today's format",
	"parameters-1e18": "a number for people, with which nothing is computed",
	"notes-deep":      "fields that are not known are ignored",
	"samples-link":    "a link to the samples of the same run",
	"zero-values":     "weights of 0 with a right checksum",
	"weight-1e308":    "one sample that outweighs the others",
	"line-drop-all":   "a run that has kept no sample",
}

// generate runs a generator, and reports the cases that it marks by "<<<", except the sound ones.
func (h hostileCases) generate(script string, arguments ...string) {
	h.t.Helper()
	out, all := h.run(h.python, append([]string{filepath.Join(h.generators, script)}, arguments...)...)
	h.largest(all)
	found := triesPattern.FindStringSubmatch(out)
	if found == nil {
		h.t.Fatalf("the generator has not counted its tries: %s", out)
	}
	h.t.Log(found[0])
	name := ""
	for _, line := range strings.Split(out, "\n") {
		if !strings.HasPrefix(line, " ") {
			name, _, _ = strings.Cut(line, " ")
		}
		_, isSound := sound[name]
		isSound = isSound && (strings.Contains(line, "<<< verify is content") || strings.Contains(line, "<<< OTHER ANSWER"))
		if strings.Contains(line, "<<<") && !isSound {
			h.t.Errorf("%s: %s", name, line)
		}
		if strings.Contains(line, "not made:") || strings.Contains(line, "PWNED") && !strings.Contains(line, "PWNED\\'") {
			h.t.Errorf("%s", line)
		}
	}
}

// TestHostileRunDirectories tries five commands on 90 run directories that a stranger could make.
func TestHostileRunDirectories(t *testing.T) {
	h := newHostileCases(t)
	work := h.path("work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	h.generate("runs.py", "pollen-watched", h.path("run"), h.path("pictures/a/00.png"), work)
}

// TestHostileData tries fit with 80 data sets, network files and options.
func TestHostileData(t *testing.T) {
	h := newHostileCases(t)
	h.generate("data.py", "pollen-watched", h.path("work"))
}

// TestHostileImages gives predict every image that attacks a decoder.
func TestHostileImages(t *testing.T) {
	h := newHostileCases(t)
	var all []watched
	for name, content := range hostileImages(t) {
		file := h.path(name)
		if err := os.WriteFile(file, content, 0o644); err != nil {
			t.Fatal(err)
		}
		out, took := h.run("bash", "-c", `pollen-watched predict run "$0"; [ $? -lt 8 ]`, file)
		if strings.Contains(out, "goroutine ") {
			t.Errorf("%s: %.1000s", name, out)
		}
		all = append(all, took...)
	}
	h.largest(all)
}

// TestHostileWeb sends a server 63 requests that no client should send. Each is answered, none with
// an internal error, and the server does not use more memory afterwards than a command may.
func TestHostileWeb(t *testing.T) {
	h := newHostileCases(t)
	server := exec.Command("pollen", "serve", "run", "--device", "cpu", "--address", "127.0.0.1:0")
	server.Dir = h.dir
	remarks, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	address := ""
	lines := bufio.NewScanner(remarks)
	for address == "" && lines.Scan() {
		if found := regexp.MustCompile(`^serving run at http://(127\.0\.0\.1:\d+);`).FindStringSubmatch(lines.Text()); found != nil {
			address = found[1]
		}
	}
	go func() {
		for lines.Scan() { // so that the server can write
		}
	}()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(h.python, filepath.Join(h.generators, "web.py"), port, h.path("pictures/a/00.png")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	answers := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		head, _, found := strings.Cut(line, " | ")
		if !found {
			continue
		}
		if answers++; !regexp.MustCompile(` HTTP/1\.1 (100|[234]\d\d) `).MatchString(head) || strings.Contains(line, "timed out") {
			t.Errorf("answer %s", line)
		}
	}
	if answers < 60 {
		t.Errorf("%d answers: %s", answers, out)
	}
	response, err := http.Get("http://" + address + "/health")
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("health: %v, %v", response, err)
	}
	_ = response.Body.Close()
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server has not ended a minute after SIGTERM")
	}
	if peak := float64(server.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024; peak > hostileBytes {
		t.Errorf("the server took %.0f MB, at most %.0f MB are allowed", peak/1e6, hostileBytes/1e6)
	}
	t.Logf("%d answers", answers)
}
