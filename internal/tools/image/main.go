// Command image puts a program into a container image without a container engine:
//
//	go run -C internal/tools ./image PROGRAM NAME ARCHIVE
//
// writes an OCI archive, compressed, of an image called NAME whose entry point is the program,
// run by the user 65532, not root. The image has the C library of this machine if the program is
// linked to it, an empty /tmp, and nothing else. Containerfile makes the same image with an
// engine. The archive has no times: the same program gives the same archive.
package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user and group of the program in the container, as in distroless's images for programs
// that are not root's. It is a number, which Kubernetes needs to know that it is not root.
const user = "65532:65532"

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "image: usage: image PROGRAM NAME ARCHIVE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(program, name, archive string) error {
	files, architecture, err := contents(program)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := pack(&packed, files); err != nil {
		return err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.Config.Entrypoint = []string{"/" + filepath.Base(program)}
	config.Config.User = user
	// NVIDIA's container runtime reads these; the driver is the host's.
	config.Config.Env = []string{"PATH=/", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	return write(image, name, archive)
}

// contents returns the files of the image with their sources, and the architecture.
func contents(program string) (map[string]string, string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	architecture, known := map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[file.Machine]
	if !known {
		return nil, "", fmt.Errorf("%s must be for amd64 or arm64, is for %v", program, file.Machine)
	}
	files := map[string]string{filepath.Base(program): program}
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		return files, architecture, err
	}
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, "", fmt.Errorf("ldd %s: %w", program, err)
	}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
		if path != program {
			files[path[1:]] = path
		}
	}
	return files, architecture, nil
}

func pack(to io.Writer, files map[string]string) error {
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[name])
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
	}
	return w.Close()
}

// write writes an image as an archive of its OCI layout.
func write(image v1.Image, name, archive string) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name}
	if err := path.AppendImage(image, layout.WithAnnotations(names)); err != nil {
		return err
	}
	to, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := archiveDir(to, dir); err != nil {
		return err
	}
	return to.Close()
}

// archiveDir writes the files of a directory as an archive, in the order of their names, without
// times.
func archiveDir(to io.Writer, dir string) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
