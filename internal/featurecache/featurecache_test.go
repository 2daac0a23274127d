package featurecache

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const width = 5

// keysOf returns keys that begin with a letter.
func keysOf(letter byte, n int) (keys []Key) {
	for i := range n {
		keys = append(keys, Key{letter, byte(i)})
	}
	return keys
}

// rowOf returns the values of a key.
func rowOf(key Key) []float32 {
	row := make([]float32, width)
	for i := range row {
		row[i] = float32(key[0])/7 + float32(key[1])/3 - float32(i)
	}
	return row
}

func put(t *testing.T, c *Cache, keys []Key) {
	t.Helper()
	if err := c.Put(keys, func(i int) []float32 { return rowOf(keys[i]) }); err != nil {
		t.Fatal(err)
	}
}

// found returns how many of some keys the cache has, whose values must be right.
func found(t *testing.T, c *Cache, keys []Key) (n int) {
	t.Helper()
	r, row := c.Reader(), make([]float32, width)
	defer r.Close()
	for _, key := range keys {
		if !r.Get(key, row) {
			continue
		}
		n++
		for i, v := range rowOf(key) {
			if row[i] != v {
				t.Fatalf("key %v: value %d is %v, want %v", key[:2], i, row[i], v)
			}
		}
	}
	return n
}

// files returns the paths of the files of rows.
func files(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestCache(t *testing.T) {
	dir, a, b := filepath.Join(t.TempDir(), "new"), keysOf('a', 20), keysOf('b', 3)
	c := Open(dir, "one", width, MaxBytes, time.Now)
	if n := found(t, c, a); n != 0 {
		t.Errorf("an empty cache has %d rows", n)
	}
	put(t, c, a)
	put(t, c, b)
	for name, c := range map[string]*Cache{"the same": c, "opened again": Open(dir, "one", width, MaxBytes, time.Now)} {
		if n := found(t, c, append(a, keysOf('c', 4)...)) + found(t, c, b); n != 23 {
			t.Errorf("%s: %d rows found, want 23", name, n)
		}
	}
	for name, c := range map[string]*Cache{
		"another network": Open(dir, "two", width, MaxBytes, time.Now),
		"another width":   Open(dir, "one", width+1, MaxBytes, time.Now),
	} {
		if r := c.Reader(); r.Get(a[0], make([]float32, width)) || r.Get(a[0], make([]float32, width+1)) {
			t.Errorf("%s: has a row", name)
		}
	}
}

// TestDamage changes each byte of a file: rows are then right or missing. All rows are missing if
// the file is shorter or longer.
func TestDamage(t *testing.T) {
	dir, keys := t.TempDir(), keysOf('a', 3)
	put(t, Open(dir, "one", width, MaxBytes, time.Now), keys)
	path := files(t, dir)[0]
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foundIn := func(content []byte) int {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return found(t, Open(dir, "one", width, MaxBytes, time.Now), keys)
	}
	for i := range intact {
		damaged := append([]byte{}, intact...)
		damaged[i] ^= 0x10
		want := 0
		if i >= headBytes+(len(keys)+1)*len(Key{}) {
			want = 2 // only a row is damaged
		}
		if n := foundIn(damaged); n != want {
			t.Errorf("byte %d: %d rows found, want %d", i, n, want)
		}
	}
	for _, size := range []int{0, len(magic), headBytes, len(intact) - 1} {
		if n := foundIn(intact[:size]); n != 0 {
			t.Errorf("%d bytes: %d rows found", size, n)
		}
	}
	if n := foundIn(append(intact[:len(intact):len(intact)], 0)); n != 0 {
		t.Errorf("a byte more: %d rows found", n)
	}
	if n := foundIn(intact); n != len(keys) {
		t.Errorf("intact: %d rows found", n)
	}
}

// TestBound: the least recently used files are removed, including other networks' files.
func TestBound(t *testing.T) {
	dir := t.TempDir()
	size := int64(headBytes + 32 + 10*(32+4*width+rowCheck))
	now := time.Now().Add(-time.Hour)
	open := func(network string) *Cache {
		c := Open(dir, network, width, 3*size, time.Now)
		now = now.Add(time.Minute)
		c.now = func() time.Time { return now }
		return c
	}
	for i, network := range []string{"one", "two", "one"} {
		put(t, open(network), keysOf(byte('a'+i), 10))
		for _, path := range files(t, dir) {
			if info, err := os.Stat(path); err == nil && info.ModTime().After(now) {
				if err := os.Chtimes(path, now, now); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := found(t, open("one"), keysOf('a', 10)); n != 10 { // now it is the last one used
		t.Fatalf("%d rows found", n)
	}
	put(t, open("one"), keysOf('d', 10))
	for letter, want := range map[byte]int{'a': 10, 'c': 10, 'd': 10} {
		if n := found(t, open("one"), keysOf(letter, 10)); n != want {
			t.Errorf("%c: %d rows found, want %d", letter, n, want)
		}
	}
	if n := found(t, open("two"), keysOf('b', 10)); n != 0 {
		t.Errorf("%d rows of the file that was not used are left", n)
	}
	put(t, open("one"), keysOf('e', 100))
	if n := found(t, open("one"), keysOf('d', 10)); n != 10 {
		t.Errorf("rows beyond the bound replace others: %d found", n)
	}
}

func TestFewFiles(t *testing.T) {
	dir := t.TempDir()
	c := Open(dir, "one", width, MaxBytes, time.Now)
	put(t, c, keysOf('a', 1))
	for i := range maxFiles {
		path := filepath.Join(c.dir, fmt.Sprint(i)+suffix)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, c, keysOf('b', 1))
	if n := len(files(t, dir)); n != maxFiles || found(t, c, keysOf('b', 1)) != 1 {
		t.Errorf("%d files are left, want %d with the last one", n, maxFiles)
	}
}

// TestPutMeanwhile: a process writes rows while another one does. A temporary file that a killed
// process left is removed.
func TestPutMeanwhile(t *testing.T) {
	dir := t.TempDir()
	open := func() *Cache { return Open(dir, "network", width, MaxBytes, time.Now) }
	first, second := keysOf('a', 3), keysOf('b', 3)
	c, begun := open(), false
	err := c.Put(first, func(i int) []float32 {
		if !begun {
			begun = true
			put(t, open(), second)
		}
		return rowOf(first[i])
	})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := found(t, open(), first), found(t, open(), second); a != 3 || b != 3 {
		t.Errorf("%d and %d rows are found, want 3 and 3", a, b)
	}

	left := filepath.Join(c.dir, ".rows.1-1.partial")
	if err := os.WriteFile(left, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(left, before, before); err != nil {
		t.Fatal(err)
	}
	put(t, open(), keysOf('c', 1))
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the file of a killed process: %v, want none", err)
	}
}

func TestPutFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Open(dir, "one", width, MaxBytes, time.Now).Put(keysOf('a', 1), func(int) []float32 { return make([]float32, width) }); err == nil {
		t.Error("a directory that is a file: no error")
	}
}
