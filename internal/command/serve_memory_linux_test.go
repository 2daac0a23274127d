package command

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// flatPNG returns a PNG file of zeros with 8 bytes per pixel.
func flatPNG(t *testing.T, side int) []byte {
	t.Helper()
	chunk := func(name string, content []byte) []byte {
		body := append([]byte(name), content...)
		all := append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), body...)
		return binary.BigEndian.AppendUint32(all, crc32.ChecksumIEEE(body))
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	for range side {
		if _, err := w.Write(make([]byte, 1+8*side)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(side)), uint32(side))
	return slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(header, 16, 6, 0, 0, 0)), chunk("IDAT", packed.Bytes()), chunk("IEND", nil))
}

// hostileImages returns images that take much memory, or claim to, by name. Those of
// ../shared/cases are added if that directory exists.
func hostileImages(t *testing.T) map[string][]byte {
	t.Helper()
	encoded := func(encode func(w io.Writer) error) []byte {
		var b bytes.Buffer
		if err := encode(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	all := map[string][]byte{
		"garbage":         []byte("garbage"),
		"flat 500":        flatPNG(t, 500),
		"flat 1500":       flatPNG(t, 1500),
		"flat 4900":       flatPNG(t, 4900),
		"grey 200":        encoded(func(w io.Writer) error { return png.Encode(w, image.NewGray(image.Rect(0, 0, 200, 200))) }),
		"grey 900":        encoded(func(w io.Writer) error { return png.Encode(w, image.NewGray(image.Rect(0, 0, 900, 900))) }),
		"JPEG 1200":       encoded(func(w io.Writer) error { return jpeg.Encode(w, image.NewRGBA(image.Rect(0, 0, 1200, 1200)), nil) }),
		"JPEG 4000":       encoded(func(w io.Writer) error { return jpeg.Encode(w, image.NewGray(image.Rect(0, 0, 4000, 4000)), nil) }),
		"TIFF at 4 GB":    []byte("II*\x00\xf0\xff\xff\xff"),
		"cut":             flatPNG(t, 1000)[:500],
		"a long text":     bytes.Repeat([]byte("P2 100 100 255\n"), 1<<20),
		"larger than all": flatPNG(t, 9999),
	}
	from := filepath.Join("..", "..", "..", "shared", "cases", "reliability")
	if _, err := os.Stat(from); err != nil {
		t.Logf("without the images of %s: %v", from, err)
		return all
	}
	out := t.TempDir()
	command := exec.Command("go", "run", "./pictures", out)
	command.Dir = from
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	files, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no images (%v)", err)
	}
	for _, file := range files {
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// limitedServer is a server with a limited address space.
type limitedServer struct {
	*testing.T
	command *exec.Cmd
	address string
	ended   chan error
	remarks *bytes.Buffer // complete once the server has ended
}

// startLimited starts a server with an address space of some kB. Without MALLOC_ARENA_MAX the C
// library reserves 64 MiB for each thread.
func startLimited(t *testing.T, p processes, kilobytes string) *limitedServer {
	t.Helper()
	s := &limitedServer{T: t, ended: make(chan error, 1), remarks: &bytes.Buffer{}}
	s.command = exec.Command("bash", "-c", "ulimit -v "+kilobytes+"; exec pollen serve run --device cpu --address 127.0.0.1:0")
	s.command.Dir, s.command.Env = p.dir, append(os.Environ(), "MALLOC_ARENA_MAX=1")
	remarks, err := s.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Skip(err)
	}
	lines := bufio.NewScanner(remarks)
	pattern := regexp.MustCompile(`^serving run at (http://127\.0\.0\.1:\d+);`)
	for s.address == "" && lines.Scan() {
		s.remarks.WriteString(lines.Text() + "\n")
		if found := pattern.FindStringSubmatch(lines.Text()); found != nil {
			s.address = found[1]
		}
	}
	go func() {
		for lines.Scan() {
			s.remarks.WriteString(lines.Text() + "\n")
		}
		s.ended <- s.command.Wait()
	}()
	if s.address == "" {
		<-s.ended
		t.Fatalf("the server did not start: %s", s.remarks)
	}
	return s
}

func (s *limitedServer) post(content []byte) (code int, err error) {
	client := &http.Client{Timeout: time.Minute}
	response, err := client.Post(s.address+"/predict", "application/octet-stream", bytes.NewReader(content))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// postTogether posts an image from several clients at once, and returns the number of responses
// with each status.
func (s *limitedServer) postTogether(name string, content []byte, together int) map[int]int {
	var mu sync.Mutex
	codes := map[int]int{}
	var clients sync.WaitGroup
	for range together {
		clients.Go(func() {
			code, err := s.post(content)
			// A server that refuses a long body closes the connection while it is sent.
			refused := err != nil && (strings.Contains(err.Error(), "reset") || strings.Contains(err.Error(), "broken pipe"))
			mu.Lock()
			defer mu.Unlock()
			if codes[code]++; err != nil && !refused || code == http.StatusInternalServerError {
				s.Errorf("%s: %d, %v", name, code, err)
			}
		})
	}
	clients.Wait()
	return codes
}

// TestServerUnderALimit sends images that take much memory, each 40 times at once, to a server with
// an address space of 1 GB; Go and the program take some 650 MB of it. The server must survive, and
// meanwhile answer other requests within a second.
func TestServerUnderALimit(t *testing.T) {
	testenv.NeedsAll(t, "40 clients send images of up to 800 MB")
	const together, limit = 40, "1000000"
	p := newProcesses(t)
	p.want(0, "pollen", strings.Fields("fit --method sgld --data notmnist --model lenet-small --batch 20 --epochs 2 --samples 5 --folder run"))
	images := hostileImages(t)
	s := startLimited(t, p, limit)
	good := images["grey 200"]
	var done atomic.Bool
	var took []time.Duration
	var others sync.WaitGroup
	others.Go(func() {
		for !done.Load() {
			begin := time.Now()
			code, err := s.post(good)
			if err != nil || code != 200 {
				t.Errorf("another client got %d, %v", code, err)
				return
			}
			took = append(took, time.Since(begin))
			time.Sleep(5 * time.Millisecond)
		}
	})
	for name, content := range images {
		begin := time.Now()
		codes := s.postTogether(name, content, together)
		t.Logf("%-18s %5.1f s: %v", name, time.Since(begin).Seconds(), codes)
	}
	done.Store(true)
	others.Wait()
	slices.Sort(took)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(s.command.Process.Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d other requests: p50 %v, p99 %v, max %v", len(took), took[len(took)/2], took[99*len(took)/100], took[len(took)-1])
	t.Log(regexp.MustCompile(`(?m)^Vm(Peak|HWM):.*$`).FindAllString(string(status), -1))
	if p99 := took[99*len(took)/100]; p99 > time.Second {
		t.Errorf("the 99th percentile of other requests is %v", p99)
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-s.ended; s.command.ProcessState.ExitCode() != 0 {
		t.Errorf("the server ended with %v: %.4000s", err, s.remarks)
	}
	t.Log(s.remarks)
}
