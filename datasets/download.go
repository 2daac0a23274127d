package datasets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// A downloader fetches published files. An interrupted download stays as a
// .part file and is resumed; a file gets its name only after its SHA-256 has
// been verified.
type downloader struct {
	client   *http.Client
	progress func(file string, done, total int64)
	stall    time.Duration // without a byte, after which a connection is given up
}

// attemptsPerMirror bounds how often a mirror is asked for the rest of a file after a cut
// connection.
const attemptsPerMirror = 5

// errCannotResume is the error where the .part file is not shorter than the
// file of the server.
var errCannotResume = errors.New("status 416, the server's file ends before")

// newDownloader returns a downloader with the settings for the open network.
// progress may be nil.
func newDownloader(progress func(file string, done, total int64)) downloader {
	return downloader{client: secureClient(http.DefaultTransport), progress: progress, stall: 30 * time.Second}
}

// maxRedirects is how often a mirror may send a client elsewhere.
const maxRedirects = 10

// secureClient is a client that follows redirects to HTTPS alone.
func secureClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.Errorf("%d redirects", len(via))
		}
		return checkSecure(request.URL)
	}}
}

// checkSecure refuses addresses that are not HTTPS: anyone on the way can read what comes
// otherwise, and put something else in its place.
func checkSecure(address *url.URL) error {
	if address.Scheme != "https" {
		return errors.Errorf("%s is not HTTPS", address)
	}
	return nil
}

// fetch downloads one file into folder, from the first mirror that has it right.
func (d downloader) fetch(ctx context.Context, mirrors []string, wanted file, dir string) error {
	path := filepath.Join(dir, wanted.name+".gz")
	if verify(path, wanted.packed) == nil {
		return nil
	}
	var failures []string
	for _, mirror := range mirrors {
		address := mirror + wanted.name + ".gz"
		err := d.fetchFrom(ctx, address, path, wanted)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Sprintf("download %s: %v", address, err))
	}
	return errors.New(strings.Join(failures, "\n  "))
}

// fetchFrom downloads one file from one address, resuming an earlier attempt; if the whole is then
// wrong, it is downloaded once more from the start.
func (d downloader) fetchFrom(ctx context.Context, address, path string, wanted file) error {
	part := path + ".part"
	resumed := fileSize(part) > 0
	for attempt := 1; ; attempt++ {
		before := fileSize(part)
		err := d.append(ctx, address, part, wanted)
		if err != nil {
			if fileSize(part) > before && attempt < attemptsPerMirror && ctx.Err() == nil {
				continue
			}
			if errors.Is(err, errCannotResume) && resumed {
				resumed = false
				os.Remove(part)
				continue
			}
			return err
		}
		if err := verify(part, wanted.packed); err != nil {
			os.Remove(part)
			if resumed {
				resumed = false
				continue
			}
			return err
		}
		// Another process may have been faster; its file is as good.
		if err := os.Rename(part, path); err != nil && verify(path, wanted.packed) != nil {
			return err
		}
		return nil
	}
}

// append makes one request for the bytes that part still lacks and writes
// them to it. On an error, part keeps what has arrived.
func (d downloader) append(ctx context.Context, address, part string, wanted file) error {
	offset := fileSize(part)
	if offset == wanted.size {
		return nil
	}
	if offset > wanted.size {
		offset = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.stall, func() { cancel(errors.Errorf("no data for %v", d.stall)) })
	defer watchdog.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil {
		err = checkSecure(request.URL)
	}
	if err != nil {
		return err
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := d.client.Do(request)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusOK:
		offset = 0 // the server sends the whole file, whatever was asked for
	case response.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", offset)):
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return errors.Wrapf(errCannotResume, "resuming at byte %d of %d", offset, wanted.size)
	default:
		return errors.Errorf("status %s, Content-Range %q, want the bytes from %d",
			response.Status, response.Header.Get("Content-Range"), offset)
	}

	output, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer output.Close()
	if err := output.Truncate(offset); err != nil {
		return err
	}
	sink := &progressWriter{io.NewOffsetWriter(output, offset), func(n int) {
		watchdog.Reset(d.stall)
		offset += int64(n)
		if d.progress != nil {
			d.progress(wanted.name+".gz", offset, wanted.size)
		}
	}}
	limit := wanted.size - offset
	_, err = io.Copy(sink, io.LimitReader(response.Body, limit))
	if err != nil {
		return errors.Wrapf(causeOf(ctx, err), "after %d of %d bytes", offset, wanted.size)
	}
	if offset < wanted.size {
		return errors.Errorf("the file ends after %d bytes, want %d", offset, wanted.size)
	}
	return errors.Wrap(output.Sync(), "writing to disk")
}

// causeOf returns why ctx was cancelled, or err if it was not.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A progressWriter calls wrote after each write.
type progressWriter struct {
	io.Writer
	wrote func(n int)
}

// Write writes to the underlying writer.
func (w *progressWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.wrote(n)
	return n, err
}

// fileSize returns the size of a file, 0 if there is none.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// verify returns an error unless the file has the given SHA-256.
func verify(path, want string) error {
	got, err := hashOf(path)
	if err == nil && got != want {
		return errors.Errorf("SHA-256 is %s, want %s", got, want)
	}
	return err
}

// hashOf is a file's SHA-256.
func hashOf(path string) (string, error) {
	opened, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer opened.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, opened)
	return hex.EncodeToString(hash.Sum(nil)), err
}
