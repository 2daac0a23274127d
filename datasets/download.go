package datasets

import (
	"context"
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

// downloader downloads published files. An interrupted download is kept as a .part file and
// resumed. A file is renamed into place only after its SHA-256 has been verified.
type downloader struct {
	client   *http.Client
	progress func(file string, done, total int64)
	stall    time.Duration // time without data after which a connection is closed
}

// attemptsPerMirror is the maximum number of requests to a mirror for the rest of a file after
// broken connections.
const attemptsPerMirror = 5

// errCannotResume is the error if the .part file is not shorter than the server's file.
var errCannotResume = errors.New("status 416: the server's file ends before")

// newDownloader returns a downloader with the production settings. progress may be nil.
func newDownloader(progress func(file string, done, total int64)) downloader {
	return downloader{client: secureClient(http.DefaultTransport), progress: progress, stall: 30 * time.Second}
}

// maxRedirects is the maximum number of redirects.
const maxRedirects = 10

// secureClient returns a client that follows redirects only to HTTPS.
func secureClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(request *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.Errorf("%d redirects", len(via))
		}
		return checkSecure(request.URL)
	}}
}

// checkSecure returns an error for addresses that are not HTTPS, whose content anyone on the way
// can read and replace.
func checkSecure(address *url.URL) error {
	if address.Scheme != "https" {
		return errors.Errorf("address must be HTTPS, got %s", address)
	}
	return nil
}

// fetch downloads a file into dir, from the first mirror with the right content.
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

// fetchFrom downloads a file from one address, resuming an earlier attempt. If the result is wrong,
// it downloads the file once more from the start.
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
		// Another process may have been faster, with the same file.
		if err := os.Rename(part, path); err != nil && verify(path, wanted.packed) != nil {
			return err
		}
		return nil
	}
}

// append requests the missing bytes of part and appends them. After an error, part has the bytes
// that have arrived.
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

	response, err := d.request(ctx, address, offset)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusOK:
		offset = 0 // the server ignores the range and sends the whole file
	case response.StatusCode == http.StatusPartialContent &&
		strings.HasPrefix(response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", offset)):
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return errors.Wrapf(errCannotResume, "resuming at byte %d of %d", offset, wanted.size)
	default:
		return errors.Errorf("must get the bytes from %[3]d, got status %[1]s, Content-Range %[2]q",
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
		return errors.Errorf("the file must have %[2]d bytes, got %[1]d", offset, wanted.size)
	}
	return errors.Wrap(output.Sync(), "writing to disk")
}

// request requests the bytes of a file from offset on.
func (d downloader) request(ctx context.Context, address string, offset int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil {
		err = checkSecure(request.URL)
	}
	if err != nil {
		return nil, err
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	response, err := d.client.Do(request)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	return response, nil
}

// causeOf returns the cause of ctx if it was cancelled, else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// progressWriter calls wrote after each write.
type progressWriter struct {
	io.Writer
	wrote func(n int)
}

// Write implements io.Writer.
func (w *progressWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.wrote(n)
	return n, err
}

// fileSize returns the size of a file, or 0 if there is none.
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
		return errors.Errorf("SHA-256 must be %[2]s, got %[1]s", got, want)
	}
	return err
}
