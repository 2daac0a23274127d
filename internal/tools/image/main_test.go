package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// The archive of pollen is an OCI layout, whose digests are right, with an image that runs pollen.
func TestArchive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("not Linux: there are no programs for containers to put into images")
	}
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "pollen"), filepath.Join(dir, "pollen.tar")
	build := exec.Command("go", "build", "-o", program, "./cmd/pollen")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := run(program, "pollen:1", archive); err != nil {
		t.Fatal(err)
	}
	unpacked := filepath.Join(dir, "layout")
	extract(t, archive, unpacked)
	index, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%d images (%v), want one", len(manifest.Manifests), err)
	}
	if name := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; name != "pollen:1" {
		t.Errorf("the image's name is %q", name)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	described, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if described.MediaType != types.OCIManifestSchema1 || described.Config.MediaType != types.OCIConfigJSON || described.Layers[0].MediaType != types.OCILayer {
		t.Errorf("the image's parts are %s, %s and %s: not OCI's", described.MediaType, described.Config.MediaType, described.Layers[0].MediaType)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH || fmt.Sprint(config.Config.Entrypoint) != "[/pollen]" {
		t.Errorf("an image for %s and %s that runs %v", config.OS, config.Architecture, config.Config.Entrypoint)
	}
	if config.Config.User != "65532:65532" {
		t.Errorf("the image's user is %q, want one that is not root", config.Config.User)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	want, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if err != nil {
			t.Fatalf("pollen is not in the image: %v", err)
		}
		if header.Name != "pollen" {
			continue
		}
		got, err := io.ReadAll(files)
		if err != nil || !bytes.Equal(got, want) || header.Mode&0o111 == 0 {
			t.Errorf("%d bytes of mode %o (%v), want the program's %d", len(got), header.Mode, err, len(want))
		}
		return
	}
}

// extract unpacks an archive.
func extract(t *testing.T, archive, to string) {
	t.Helper()
	from, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for files := tar.NewReader(from); ; {
		header, err := files.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
