package datasets

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// decodedMagic begins a file of decoded images. Its number changes whenever decoding the same files
// may give other bytes or remarks.
const decodedMagic = "pollen decoded pictures 5\n"

// decodedCache keeps the decoded images of an image directory, in one file per directory and
// requested shape: the magic, a key (32 bytes), the size of the header (8 bytes, little-endian),
// the header (a decodedSet in JSON), the images, and the SHA-256 of all of these.
type decodedCache struct {
	path string // "" keeps nothing
	key  [sha256.Size]byte
}

// decodedSet has the decoded images of an image directory, as in the cache.
type decodedSet struct {
	Channels, Height, Width int
	Parts                   [3]*decodedPart // by Split
	Remarks                 []decode.Remark `json:",omitempty"`
	images                  []byte          // of all parts, concatenated
}

// decodedPart is one split of a decodedSet.
type decodedPart struct {
	Files   []string // one for each image
	Labels  []int32
	Skipped []string
	Hash    string
}

func newDecodedCache(t tree, options Options) (decodedCache, error) {
	if options.NoCache {
		return decodedCache{}, nil
	}
	dir, err := options.cache()
	if err != nil {
		options.notKept(err)
		return decodedCache{}, nil
	}
	root, err := filepath.Abs(t.root)
	if err != nil {
		return decodedCache{}, errors.Wrap(err, "datasets")
	}
	place := sha256.Sum256(fmt.Appendf(nil, "%s\n%d %d %d%s", root, options.Channels, options.Height, options.Width, options.scalingText()))
	return decodedCache{filepath.Join(dir, "decoded", hex.EncodeToString(place[:16])), t.key(options)}, nil
}

// scalingText distinguishes images that are cropped, or have fewer significant bits, from others.
func (o Options) scalingText() (text string) {
	if o.Crop {
		text = " crop"
	}
	if o.Bits != 0 {
		text += fmt.Sprintf(" bits %d", o.Bits)
	}
	return text
}

// notKept remarks that decoded images cannot be kept in the default cache directory.
func (o Options) notKept(err error) {
	o.tell(fmt.Sprintf("decoded images cannot be cached, and the next start decodes them again: %v (set XDG_CACHE_HOME for another cache directory)", err))
}

// key returns the SHA-256 of everything that determines the images: the requested shape, and the
// names, classes, sizes and modification times of all files.
func (t tree) key(options Options) [sha256.Size]byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s%d %d %d%s\n", decodedMagic, options.Channels, options.Height, options.Width, options.scalingText())
	for split, list := range present(t.splits) {
		fmt.Fprintf(hash, "%d %q %q\n", split, list.dir, list.skipped)
		for _, p := range append(list.tables[:len(list.tables):len(list.tables)], list.images...) {
			fmt.Fprintf(hash, "%q %q %d %d\n", p.name, p.class, p.size, p.modified)
		}
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// read returns the cached set, or nil if there is none, if it was made from other files than the
// present ones, or if it is damaged.
func (c decodedCache) read() *decodedSet {
	if c.path == "" {
		return nil
	}
	file, err := openFile(c.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	start := make([]byte, len(decodedMagic)+sha256.Size+8)
	if _, err := file.ReadAt(start, 0); err != nil || !bytes.Equal(start[:len(start)-8], append([]byte(decodedMagic), c.key[:]...)) {
		return nil
	}
	if info, err := file.Stat(); err != nil || checkCached(info.Size()) != nil {
		return nil // decoding returns the error
	}
	content, err := os.ReadFile(c.path)
	if err != nil || len(content) < len(start)+sha256.Size {
		return nil
	}
	body, sum := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(sum) {
		return nil
	}
	size := binary.LittleEndian.Uint64(start[len(start)-8:])
	if size > uint64(len(body)-len(start)) {
		return nil
	}
	set := &decodedSet{images: body[len(start)+int(size):]}
	if json.Unmarshal(body[len(start):len(start)+int(size)], set) != nil {
		return nil
	}
	return set
}

// write stores a set. The file is renamed into place when it is complete.
func (c decodedCache) write(set *decodedSet) (err error) {
	if c.path == "" {
		return nil
	}
	defer func() { err = errors.WithStack(err) }()
	header, err := json.Marshal(set)
	if err != nil {
		return err
	}
	start := append([]byte(decodedMagic), c.key[:]...)
	start = binary.LittleEndian.AppendUint64(start, uint64(len(header)))
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(c.path), ".part-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename
	hash := sha256.New()
	for _, part := range [][]byte{start, header, set.images} {
		hash.Write(part)
		if _, err := file.Write(part); err != nil {
			file.Close()
			return err
		}
	}
	if _, err = file.Write(hash.Sum(nil)); err == nil {
		err = file.Sync()
	}
	if err = cmp.Or(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), c.path)
	}
	return err
}
