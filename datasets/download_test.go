package datasets

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A mirror serves files the way real servers do.
type mirror struct {
	*httptest.Server
	mutex sync.Mutex
	asked []string
}

// requests returns the path and the range of each request so far.
func (m *mirror) requests() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.asked)
}

// newMirror starts a server on the loopback interface.
func newMirror(t *testing.T, serve func(w http.ResponseWriter, r *http.Request)) *mirror {
	t.Helper()
	m := &mirror{}
	m.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mutex.Lock()
		m.asked = append(m.asked, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
		m.mutex.Unlock()
		serve(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// serveContent serves one file, ranges included.
func serveContent(content []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

// cutAfter serves a file, but closes each connection after n bytes.
func cutAfter(n int, content []byte) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		from := 0
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
			w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
			w.WriteHeader(http.StatusPartialContent)
		} else {
			w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		}
		rest := content[from:]
		if len(rest) > n {
			_, _ = w.Write(rest[:n])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(rest)
	}
}

// parcel is the file that the tests download.
func parcel() (file, []byte) {
	content := randomBytes(5, 100_000)
	return file{name: "parcel", packed: sha256Hex(content), size: int64(len(content))}, content
}

// fetch downloads the parcel from mirrors into a new folder where an earlier attempt left the given
// bytes.
func fetch(t *testing.T, left []byte, mirrors ...*mirror) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	if left != nil {
		write(t, left, dir, "parcel.gz.part")
	}
	var addresses []string
	for _, m := range mirrors {
		addresses = append(addresses, m.URL+"/")
	}
	wanted, _ := parcel()
	return dir, trusting(mirrors...).fetch(t.Context(), addresses, wanted, dir)
}

// trusting returns a downloader that trusts the test's servers, which all have the same
// certificate.
func trusting(mirrors ...*mirror) downloader {
	d := newDownloader(nil)
	if len(mirrors) > 0 {
		d.client = secureClient(mirrors[0].Client().Transport)
	}
	return d
}

// Nothing comes by plain HTTP, neither at once nor by a redirect.
func TestDownloadsAreSecure(t *testing.T) {
	_, content := parcel()
	plain := httptest.NewServer(http.HandlerFunc(serveContent(content)))
	t.Cleanup(plain.Close)
	wanted, _ := parcel()
	err := newDownloader(nil).fetch(t.Context(), []string{plain.URL + "/"}, wanted, t.TempDir())
	wantError(t, err, ": address must be HTTPS, got http://127.0.0.1")
	elsewhere := newMirror(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, plain.URL, http.StatusFound) })
	_, err = fetch(t, nil, elsewhere)
	wantError(t, err, ": address must be HTTPS, got http://127.0.0.1")
	_, err = fetch(t, nil, newMirror(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }))
	wantError(t, err, "10 redirects")
	for _, s := range sources() {
		for _, address := range s.mirrors {
			if !strings.HasPrefix(address, "https://") {
				t.Errorf("%s comes from %s", s.name, address)
			}
			for _, pair := range s.files {
				for _, f := range []file{pair.images, pair.labels} {
					if f.packed != "" && len(f.packed) != 64 || f.packed == "" && f.size != 0 {
						t.Errorf("%s: %s has no SHA-256", s.name, f.name)
					}
				}
			}
		}
	}
}

// wantParcel fails the test unless the folder has the parcel and nothing else.
func wantParcel(t *testing.T, dir string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	_, content := parcel()
	got, err := os.ReadFile(filepath.Join(dir, "parcel.gz"))
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes (%v), want the %d of the parcel", len(got), err, len(content))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v, want the parcel only", entries)
	}
}

func TestDownload(t *testing.T) {
	_, content := parcel()
	other := bytes.Clone(content)
	other[77] ^= 1
	missing := http.NotFound
	ignoresRanges := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
	for _, test := range []struct {
		name     string
		left     []byte // by an earlier attempt
		serve    func(http.ResponseWriter, *http.Request)
		requests []string
	}{
		{"whole", nil, serveContent(content), []string{"/parcel.gz"}},
		{"resumed", content[:60_000], serveContent(content), []string{"/parcel.gz bytes=60000-"}},
		{"complete", content, missing, nil},
		{"server without ranges", content[:60_000], ignoresRanges, []string{"/parcel.gz bytes=60000-"}},
		{"too much left", append(bytes.Clone(content), 1), serveContent(content), []string{"/parcel.gz"}},
		{"wrong bytes left", other[:60_000], serveContent(content), []string{"/parcel.gz bytes=60000-", "/parcel.gz"}},
		{"wrong bytes left, complete", other, serveContent(content), []string{"/parcel.gz"}},
		{"cut connections", nil, cutAfter(40_000, content), []string{
			"/parcel.gz", "/parcel.gz bytes=40000-", "/parcel.gz bytes=80000-",
		}},
		{"more than the file", nil, serveContent(append(bytes.Clone(content), 1, 2, 3)), []string{"/parcel.gz"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMirror(t, test.serve)
			dir, err := fetch(t, test.left, m)
			wantParcel(t, dir, err)
			if diff := cmp.Diff(test.requests, m.requests()); diff != "" {
				t.Error("requests:", diff)
			}
		})
	}
}

func TestDownloadErrors(t *testing.T) {
	_, content := parcel()
	other := bytes.Clone(content)
	other[77] ^= 1
	wrongRange := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Range", "bytes 5-99999/100000")
		w.WriteHeader(http.StatusPartialContent)
	}
	for _, test := range []struct {
		name  string
		left  []byte
		serve func(http.ResponseWriter, *http.Request)
		want  string
		kept  int // bytes left for the next attempt
	}{
		{"wrong hash", nil, serveContent(other), "SHA-256 must be " + sha256Hex(content) + ", got " + sha256Hex(other), 0},
		{"not found", content[:100], http.NotFound, `must get the bytes from 100, got status 404 Not Found, Content-Range ""`, 100},
		{"another range", content[:100], wrongRange, `must get the bytes from 100, got status 206 Partial Content, Content-Range "bytes 5-99999/100000"`, 100},
		{"short file", nil, serveContent(content[:99_000]), "resuming at byte 99000 of 100000: status 416: the server's file ends before", 99_000},
		{"cut each time", nil, cutAfter(10_000, content), "after 50000 of 100000 bytes: unexpected EOF", 50_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMirror(t, test.serve)
			dir, err := fetch(t, test.left, m)
			wantError(t, err, "download "+m.URL+"/parcel.gz: ", test.want)
			if _, err := os.Stat(filepath.Join(dir, "parcel.gz")); err == nil {
				t.Error("there is a file nevertheless")
			}
			if size := fileSize(filepath.Join(dir, "parcel.gz.part")); size != int64(test.kept) {
				t.Errorf("%d bytes are kept, want %d", size, test.kept)
			}
		})
	}
}

// A mirror with a wrong file is skipped.
func TestDownloadNextMirror(t *testing.T) {
	_, content := parcel()
	other := bytes.Clone(content)
	other[77] ^= 1
	bad, cut, good := newMirror(t, serveContent(other)), newMirror(t, cutAfter(1000, content)), newMirror(t, serveContent(content))
	dir, err := fetch(t, nil, newMirror(t, http.NotFound), bad, cut, good)
	wantParcel(t, dir, err)
	if diff := cmp.Diff([]string{"/parcel.gz bytes=5000-"}, good.requests()); diff != "" {
		t.Error("requests to the last mirror:", diff)
	}
}

func TestDownloadStalled(t *testing.T) {
	_, content := parcel()
	m := newMirror(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	wanted, _ := parcel()
	d := trusting(m)
	d.stall = 20 * time.Millisecond
	err := d.fetch(t.Context(), []string{m.URL + "/"}, wanted, t.TempDir())
	wantError(t, err, "after 0 of 100000 bytes: no data for 20ms")
}

func TestDownloadCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, content := parcel()
	first := newMirror(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	second := newMirror(t, serveContent(content))
	wanted, _ := parcel()
	err := trusting(first).fetch(ctx, []string{first.URL + "/", second.URL + "/"}, wanted, t.TempDir())
	wantError(t, err, "context canceled")
	if len(second.requests()) > 0 {
		t.Error("the next mirror was asked nevertheless")
	}
}

// Load downloads a file that it finds in no place into the cache, and finds it there the next
// time.
func TestLoadDownloads(t *testing.T) {
	s, contents := tiny(t)
	m := newMirror(t, func(w http.ResponseWriter, r *http.Request) {
		images, labels := contents[Test][0], contents[Test][1]
		if r.URL.Path == "/t10k-labels-idx1-ubyte.gz" {
			images = labels
		}
		serveContent(packed(t, images))(w, r)
	})
	s.mirrors = []string{m.URL + "/"}
	usual := http.DefaultTransport
	http.DefaultTransport = m.Client().Transport
	t.Cleanup(func() { http.DefaultTransport = usual })
	options := isolated(t)
	options.Offline = false
	if got := s.whereabouts(Test, options); got != s.mirrors[0] {
		t.Errorf("whereabouts are %q, want the mirror", got)
	}
	var files, last int64
	options.OnProgress = func(name string, done, total int64) {
		if done == total {
			files++
		}
		last = total
	}
	want := filepath.Join(options.Cache, "tiny")
	for range 2 {
		d, err := s.load(Test, options)
		if err != nil {
			t.Fatal(err)
		}
		if d.Place != want || d.Len() != 2 || s.whereabouts(Test, options) != want {
			t.Errorf("%d images at %s, want 2 at %s", d.Len(), d.Place, want)
		}
	}
	if diff := cmp.Diff([]string{"/t10k-images-idx3-ubyte.gz", "/t10k-labels-idx1-ubyte.gz"}, m.requests()); diff != "" {
		t.Error("requests:", diff)
	}
	if files != 2 || last != s.files[Test].labels.size {
		t.Errorf("progress told of %d whole files, the last of %d bytes", files, last)
	}
	// Damage in the cache is an error, too.
	write(t, packed(t, contents[Train][1]), want, "t10k-labels-idx1-ubyte.gz")
	_, err := s.load(Test, options)
	wantError(t, err, "t10k-labels-idx1-ubyte.gz: offset 4: 2 images: dimensions must be [2], got [3]")
}
