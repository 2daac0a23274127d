package doctest

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/command"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/internal/parquettest"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// TestMain makes the test's program the command pollen when it is called by that name.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == "pollen" || name == "pollen.exe" {
		os.Exit(command.Main())
	}
	testenv.InMemory()
	os.Exit(m.Run())
}

// pollen puts a command pollen, which is the test's own program, into a directory of its own, and
// returns the directory.
func pollen(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the documents' commands are for a POSIX shell")
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(own, filepath.Join(bin, "pollen")); err != nil {
		t.Fatal(err)
	}
	return bin
}

// call matches a call of pollen at the start of a command line. The group is its arguments.
var call = regexp.MustCompile(`^(?:go run \./cmd/pollen|(?:\./)?pollen)(?:\s+(.*))?$`)

var variable = regexp.MustCompile(`\$\w+`)

// TestCommands: every call of pollen in any page has a subcommand and flags that exist, with
// values that the flags accept.
func TestCommands(t *testing.T) {
	bin := pollen(t)
	listed, err := exec.Command(filepath.Join(bin, "pollen"), "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]bool{}
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			m := call.FindStringSubmatch(line)
			if m == nil || checked[line] {
				continue
			}
			checked[line] = true
			// Without what the shell would take: pipes, redirections, further commands.
			arguments := regexp.MustCompile(`\s*(\||>|<|;|&&).*$`).ReplaceAllString(m[1], "")
			name, _, _ := strings.Cut(arguments, " ")
			if name != "" && !strings.HasPrefix(name, "-") && !regexp.MustCompile(`(?m)^  `+regexp.QuoteMeta(name)+` `).Match(listed) {
				t.Errorf("%s: %q: no command %s", p.path, line, name)
				continue
			}
			// The shell splits the arguments. Flags are parsed before --help is heeded.
			arguments = variable.ReplaceAllString(arguments, "1")
			parse := exec.Command("sh", "-c", "pollen "+arguments+" --help")
			parse.Dir, parse.Env = t.TempDir(), environment(bin, t.TempDir())
			if out, err := parse.CombinedOutput(); err != nil {
				t.Errorf("%s: %q: %v\n%s", p.path, line, err, out)
			}
		}
	}
	if len(checked) < 30 {
		t.Errorf("checked %d commands, want at least 30", len(checked))
	}
}

// TestReadme: the README's commands on the reader's own images run as they are, on small images.
func TestReadme(t *testing.T) { runPage(t, "README.md", "Your own images") }

// TestPretrained: the commands for pretrained networks run, on a small network.
func TestPretrained(t *testing.T) { runPage(t, "docs/pretrained.md", "") }

// TestTutorial: the tutorial's commands run, on small data.
func TestTutorial(t *testing.T) {
	testenv.NeedsAll(t, "fifteen trainings and evaluations")
	runPage(t, "docs/tutorial.md", "")
}

// smaller has flags that are added to commands of the pages, by a piece of the command, so that
// they take seconds. The first piece that occurs counts.
var smaller = []struct{ piece, flags string }{
	{"--estimate", ""},
	{"--resume", ""},
	{"--freeze none", "--subset 100 --epochs 2"},
	{"--model backbone.onnx", "--subset 100 --epochs 100 --samples 4"},
	{"--model net.yaml --method", "--size 16 --epochs 4"},
	{"--model cnn --method", "--size 16 --epochs 4"},
	{"pollen fit --data flowers", "--size 16 --epochs 4 --warm-epochs 4 --chains 2"},
	{"pollen fit --data beans", "--size 16 --epochs 4 --warm-epochs 4 --chains 2"},
	{"pollen fit --data digits", "--epochs 4 --burn-in 2 --samples 2 --warm-epochs 4 --chains 2"},
	{"--folder runs/first", "--subset 300 --epochs 4 --burn-in 2 --samples 2 --warm-epochs 4 --chains 2"},
	{"--method auto", "--subset 100 --epochs 1500 --burn-in 10 --samples 5"},
	{"--method momentum", "--subset 300 --epochs 5"},
	{"--method ensemble", "--subset 300 --epochs 4 --chains 2"},
	{"pollen distil", "--epochs 4 --copies 2"},
	{"pollen fit", "--subset 300 --epochs 4 --burn-in 2 --samples 2 --chains 2"},
}

// writeParquet writes the files of the tutorial's section on the Hugging Face Hub: the flowers, in
// three splits, and the unknown images without labels.
func writeParquet(t *testing.T, dir string) {
	t.Helper()
	write := func(name string, first, end int, classes ...string) {
		t.Helper()
		var images []parquettest.Image
		var labels []int64
		for label, class := range classes {
			for i := first; i < end; i++ {
				path := filepath.Join(class, fmt.Sprint(i, ".png"))
				content, err := os.ReadFile(filepath.Join(dir, path))
				if err != nil {
					t.Fatal(err)
				}
				images, labels = append(images, parquettest.Image{Bytes: content, Path: filepath.ToSlash(path)}), append(labels, int64(label))
			}
		}
		columns := []parquettest.Column{{Name: "image", Values: images}, {Name: "label", Values: labels}}
		content := parquettest.Write(parquettest.Options{Codec: parquettest.Snappy}, columns[:min(len(classes), 2)]...)
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rose, tulip := filepath.Join("flowers", "rose"), filepath.Join("flowers", "tulip")
	write("beans/data/train-00000-of-00001.parquet", 0, 90, rose, tulip)
	write("beans/data/validation-00000-of-00001.parquet", 90, 110, rose, tulip)
	write("beans/data/test-00000-of-00001.parquet", 110, 130, rose, tulip)
	write("new.parquet", 1, 5, "unknown")
}

// writeArrays writes the files of the tutorial's section on arrays: 90 small digits of three
// classes with labels, 18 without, and probabilities for the 18 that fit draws from the labelled
// ones for tests.
func writeArrays(t *testing.T, dir string) {
	t.Helper()
	const side, pixels = 28, 28 * 28
	columns := make([]string, pixels)
	line := func(label int) string {
		values := make([]string, pixels)
		for i := range values {
			values[i] = strconv.Itoa(85 * (i / side % (label + 2) % 4))
		}
		return strings.Join(values, ",")
	}
	for i := range columns {
		columns[i] = "pixel" + strconv.Itoa(i)
	}
	header := strings.Join(columns, ",") + "\n"
	train, test, theirs := "label,"+header, header, "0,1,2\n"
	for i := range 90 {
		train += strconv.Itoa(i%3) + "," + line(i%3) + "\n"
	}
	for i := range 18 {
		test += line(i%3) + "\n"
		theirs += "0.5,0.25,0.25\n"
	}
	more := append([]byte("\x93NUMPY\x01\x00\x76\x00"), fmt.Appendf(nil, "%-117s\n", "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 28, 28), }")...)
	more = append(more, make([]byte, 2*pixels)...)
	if err := os.MkdirAll(filepath.Join(dir, "digits"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"digits/train.csv": train, "digits/test.csv": test, "theirs.csv": theirs, "more.npy": string(more),
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runPage runs the commands of a page, or of one of its sections, one after the other in a
// directory with the images that they mention.
func runPage(t *testing.T, path, section string) {
	if testing.Short() {
		t.Skip("trains a network")
	}
	bin, dir := pollen(t), t.TempDir()
	p := read(t, path)
	if section != "" {
		_, text, found := strings.Cut(p.text, "\n## "+section+"\n")
		if !found {
			t.Fatalf("%s has no section %q", path, section)
		}
		p.text, _, _ = strings.Cut(text, "\n## ")
	}
	drawImages(t, filepath.Join(dir, "flowers", "rose"), 130, color.RGBA{R: 220, G: 40, B: 60, A: 255})
	drawImages(t, filepath.Join(dir, "flowers", "tulip"), 130, color.RGBA{R: 230, G: 200, B: 30, A: 255})
	drawImages(t, filepath.Join(dir, "greenhouse", "rose"), 30, color.RGBA{R: 210, G: 50, B: 70, A: 255})
	drawImages(t, filepath.Join(dir, "greenhouse", "tulip"), 30, color.RGBA{R: 220, G: 190, B: 40, A: 255})
	drawImages(t, filepath.Join(dir, "unknown"), 5, color.RGBA{G: 120, B: 40, A: 255})
	drawImages(t, filepath.Join(dir, "weeds", "nettle"), 20, color.RGBA{G: 120, B: 40, A: 255})
	if err := os.Rename(filepath.Join(dir, "unknown", "0.png"), filepath.Join(dir, "rose.jpg")); err != nil {
		t.Fatal(err)
	}
	writeArrays(t, dir)
	writeParquet(t, dir)
	backbone := onnxtest.Backbone{Channels: 3, Side: 16, Filters: 8}.Write(t)
	if err := os.Rename(backbone, filepath.Join(dir, "backbone.onnx")); err != nil {
		t.Fatal(err)
	}
	if network := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(p.text); network != nil {
		if err := os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(network[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	ran := 0
	for _, line := range p.commands() {
		m := call.FindStringSubmatch(line)
		switch {
		case m != nil && m[1] == "":
			continue // the comparison takes minutes, and .ci/run runs it
		case m != nil:
			line = "pollen " + m[1]
		case strings.HasPrefix(line, "curl "):
			askServer(t, address, filepath.Join(dir, "rose.jpg"))
			ran++
			continue
		default:
			continue
		}
		for _, s := range smaller {
			if strings.Contains(line, s.piece) {
				line = withFlags(line, s.flags)
				break
			}
		}
		run := exec.Command("sh", "-c", line)
		run.Dir, run.Env = dir, environment(bin, dir)
		if strings.HasPrefix(line, "pollen serve") {
			run = exec.Command("sh", "-c", "exec "+withFlags(line, "--address "+address))
			run.Dir, run.Env = dir, environment(bin, dir)
			startServer(t, run, address)
		} else if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s: %s: %v\n%s", path, line, err, out)
		}
		ran++
	}
	if ran < 3 {
		t.Errorf("%s: ran %d commands, want at least 3", path, ran)
	}
}

// environment is the environment of a command that finds pollen in bin and keeps its files in home.
func environment(bin, home string) []string {
	kept := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "PATH=") })
	return append(kept, "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer starts a server, which is interrupted when the test ends, and waits until it is
// ready.
func startServer(t *testing.T, server *exec.Cmd, address string) {
	t.Helper()
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for ctx.Err() == nil {
		if answer, err := http.Get("http://" + address + "/health"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no server at %s within a minute", address)
}

// askServer sends the request of curl --data-binary, since curl may be missing.
func askServer(t *testing.T, address, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post("http://"+address+"/predict", "application/octet-stream", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	_, err = body.ReadFrom(answer.Body)
	if want := `"class"`; err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(body.String(), want) {
		t.Errorf("POST /predict: %s %s (%v), want %s in it", answer.Status, body.String(), fmt.Sprint(err), want)
	}
}

// flag is a flag with its value.
var flag = regexp.MustCompile(`(--\S+) \S+`)

// withFlags returns a command with flags, which take the place of its own flags of these names.
func withFlags(line, flags string) string {
	for _, m := range flag.FindAllStringSubmatch(flags, -1) {
		line = regexp.MustCompile(" "+m[1]+`[ =]\S+`).ReplaceAllString(line, "")
	}
	return line + " " + flags
}
