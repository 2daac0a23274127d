package featurecache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// magic begins each file. Its number changes whenever the same network may compute other features
// of the same images.
const magic = "pollen features 1\n"

const (
	suffix    = ".features"
	rowCheck  = 8
	headBytes = len(magic) + 16
	// maxFile bounds the bytes of rows of one file, so that files are removed in small parts.
	maxFile = 64 << 20
	// maxFiles bounds the files of all networks, since each is opened for its keys.
	maxFiles = 512
)

// MaxBytes is the usual maximum size of a cache.
const MaxBytes = 1 << 30

// Key identifies the features of an image: a hash of all that they depend on.
type Key [sha256.Size]byte

// Cache is the rows of one network. It is not safe for concurrent use, but several processes may
// use the same directory.
type Cache struct {
	root, dir string
	width     int
	max       int64
	now       func() time.Time
	places    map[Key]place
	used      map[string]bool
}

// place is a row of a file.
type place struct {
	path string
	at   int64
}

// Open returns the cache in a directory, which need not exist, of rows with width values for the
// network of the given name. All networks' files together take at most max bytes. now is the clock
// for marking files as used.
func Open(dir, network string, width int, max int64, now func() time.Time) *Cache {
	name := sha256.Sum256([]byte(network))
	c := &Cache{root: dir, dir: filepath.Join(dir, hex.EncodeToString(name[:16])), width: width, max: max, now: now}
	c.index()
	return c
}

// index reads the keys of all files.
func (c *Cache) index() {
	c.places, c.used = map[Key]place{}, map[string]bool{}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return // there are none
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), suffix) && !strings.HasPrefix(entry.Name(), ".") {
			c.indexFile(filepath.Join(c.dir, entry.Name()))
		}
	}
}

// rowBytes is the size of a row in a file.
func (c *Cache) rowBytes() int64 { return int64(4*c.width + rowCheck) }

// indexFile adds the keys of a file to the index, or none if the file is damaged.
func (c *Cache) indexFile(path string) {
	from, err := file.Open(path, 2*maxFile)
	if err != nil {
		return
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return
	}
	head := make([]byte, headBytes)
	if _, err := from.ReadAt(head, 0); err != nil || string(head[:len(magic)]) != magic {
		return
	}
	width, rows := binary.LittleEndian.Uint64(head[len(magic):]), binary.LittleEndian.Uint64(head[len(magic)+8:])
	each := c.rowBytes() + sha256.Size
	if width != uint64(c.width) || rows > uint64(info.Size()/each) || info.Size() != int64(headBytes)+sha256.Size+int64(rows)*each {
		return
	}
	content := make([]byte, headBytes+int(rows)*sha256.Size+sha256.Size)
	if _, err := from.ReadAt(content, 0); err != nil {
		return
	}
	body, sum := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) {
		return
	}
	for i := range rows {
		key := Key(body[headBytes+int(i)*sha256.Size:])
		c.places[key] = place{path, int64(len(content)) + int64(i)*c.rowBytes()}
	}
}

// Reader reads rows. It keeps the file open that it read last.
type Reader struct {
	cache  *Cache
	path   string
	opened *os.File
	row    []byte
}

// Reader returns a reader, which must be closed.
func (c *Cache) Reader() *Reader { return &Reader{cache: c, row: make([]byte, c.rowBytes())} }

// Get reads a row, and reports whether the cache has it undamaged.
func (r *Reader) Get(key Key, to []float32) bool {
	at, ok := r.cache.places[key]
	if !ok || len(to) != r.cache.width {
		return false
	}
	if r.path != at.path {
		r.Close()
		opened, err := file.Open(at.path, 2*maxFile)
		if err != nil {
			return false
		}
		r.path, r.opened = at.path, opened
		r.cache.use(at.path)
	}
	if _, err := r.opened.ReadAt(r.row, at.at); err != nil {
		return false
	}
	values := r.row[:4*len(to)]
	if !bytes.Equal(r.row[len(values):], checkOf(key, values)) {
		return false
	}
	for i := range to {
		to[i] = math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
	}
	return true
}

// Close closes the file that was read last.
func (r *Reader) Close() {
	if r.opened != nil {
		r.opened.Close()
	}
	r.path, r.opened = "", nil
}

func checkOf(key Key, values []byte) []byte {
	hash := sha256.New()
	hash.Write(key[:])
	hash.Write(values)
	return hash.Sum(nil)[:rowCheck]
}

// use sets the modification time of a file, once per Cache, so that prune removes the files first
// that were not used for the longest time. An error, as on a read-only disk, only changes that
// order.
func (c *Cache) use(path string) {
	if !c.used[path] {
		c.used[path] = true
		_ = os.Chtimes(path, time.Time{}, c.now())
	}
}

// Put writes rows, then removes the oldest files beyond the bound. It writes nothing if these
// rows already exceed the bound on their own.
func (c *Cache) Put(keys []Key, row func(i int) []float32) error {
	each := c.rowBytes() + sha256.Size
	if int64(len(keys))*each > c.max {
		return nil
	}
	if err := file.MakeDir(c.dir); err != nil {
		return errors.WithMessage(err, "features")
	}
	if err := c.sweep(); err != nil {
		return errors.WithMessage(err, "features")
	}
	most := int(max(1, maxFile/each))
	for first := 0; first < len(keys); first += most {
		some := keys[first:min(first+most, len(keys))]
		if err := c.write(some, func(i int) []float32 { return row(first + i) }); err != nil {
			return errors.WithMessage(err, "features")
		}
	}
	return errors.WithMessage(c.prune(), "features")
}

// abandoned is the age from which a temporary file must come from a killed process.
const abandoned = time.Hour

// sweep removes the temporary files of killed processes, but none that another process may be
// writing.
func (c *Cache) sweep() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return errors.WithStack(err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !file.IsTemporary(entry.Name()) {
			continue
		}
		info, err := entry.Info()
		if err == nil && c.now().Sub(info.ModTime()) > abandoned {
			err = os.Remove(filepath.Join(c.dir, entry.Name()))
		}
		if err != nil && !os.IsNotExist(err) {
			return errors.WithStack(err)
		}
	}
	return nil
}

// write writes one file, whose name is a hash of its keys.
func (c *Cache) write(keys []Key, row func(i int) []float32) error {
	head := append([]byte{}, magic...)
	head = binary.LittleEndian.AppendUint64(head, uint64(c.width))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(keys)))
	for _, key := range keys {
		head = append(head, key[:]...)
	}
	sum := sha256.Sum256(head)
	path := filepath.Join(c.dir, hex.EncodeToString(sum[:16])+suffix)
	pending, err := file.Create(path)
	if err != nil {
		return err
	}
	defer pending.Close()
	to := bufio.NewWriterSize(pending, 1<<18)
	to.Write(head) // Flush returns the first error of all writes
	to.Write(sum[:])
	values := make([]byte, 0, c.rowBytes())
	for i, key := range keys {
		values = values[:0]
		for _, v := range row(i) {
			values = binary.LittleEndian.AppendUint32(values, math.Float32bits(v))
		}
		to.Write(append(values, checkOf(key, values)...))
	}
	if err := to.Flush(); err != nil {
		return err
	}
	if err := pending.Commit(); err != nil {
		return err
	}
	c.used[path] = true
	at := int64(headBytes + len(keys)*sha256.Size + sha256.Size)
	for i, key := range keys {
		c.places[key] = place{path, at + int64(i)*c.rowBytes()}
	}
	return nil
}

// prune removes the files of all networks that were not used for the longest time, until the others
// take at most max bytes and are at most maxFiles.
func (c *Cache) prune() error {
	type kept struct {
		path string
		size int64
		used time.Time
	}
	var all []kept
	total := int64(0)
	err := filepath.WalkDir(c.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !strings.HasSuffix(path, suffix) {
			return nil // another process may have removed it
		}
		if info, err := entry.Info(); err == nil {
			all, total = append(all, kept{path, info.Size(), info.ModTime()}), total+info.Size()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b kept) int { return a.used.Compare(b.used) })
	for i, f := range all {
		if total <= c.max && len(all)-i <= maxFiles || err != nil {
			return err
		}
		if err = os.Remove(f.path); os.IsNotExist(err) {
			err = nil
		}
		total -= f.size
	}
	return err
}
