package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// saveDumps archives the dumps of failed tests in dumps.tar.gz, if there are new ones. The caller
// must hold the record's lock.
func (r *runner) saveDumps() {
	dir := filepath.Join(r.work, "dumps")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // no test has failed
	}
	newest := time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if !newest.After(r.dumped) {
		return
	}
	r.dumped = newest
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	files := tar.NewWriter(zipped)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || archive.Len()+len(text) > maxOfFile {
			continue
		}
		if err := files.WriteHeader(&tar.Header{Name: "dumps/" + e.Name(), Mode: 0o644, Size: int64(len(text))}); err == nil {
			files.Write(text)
		}
	}
	files.Close()
	zipped.Close()
	path := filepath.Join(r.out, "dumps.tar.gz")
	err = os.WriteFile(path+".new", archive.Bytes(), 0o644)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck: saving the dumps failed:", err)
	}
}
