// Command sbom writes the software bill of materials of a Go program, as CycloneDX JSON:
//
//	go run -C internal/tools ./sbom PROGRAM > sbom.json
//
// It lists the modules that the program is built from, by what Go's linker recorded in it, the
// standard library among them, and has the SHA-256 of the program. It has no time and no serial
// number: the same program gives the same file.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "sbom: usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program string, to io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	encoder := cyclonedx.NewBOMEncoder(to, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	return encoder.EncodeVersion(describe(filepath.Base(program), hex.EncodeToString(sum[:]), info), cyclonedx.SpecVersion1_6)
}

// describe returns the bill of materials of a program.
func describe(name, sum string, info *debug.BuildInfo) *cyclonedx.BOM {
	main := module(&info.Main)
	main.Type, main.Name = cyclonedx.ComponentTypeApplication, name
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sum}}
	var settings []cyclonedx.Property
	for _, s := range info.Settings {
		settings = append(settings, cyclonedx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	main.Properties = &settings
	standard := module(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	components := []cyclonedx.Component{standard}
	for _, m := range info.Deps {
		components = append(components, module(m))
	}
	var uses []string
	for _, c := range components {
		uses = append(uses, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &uses}}
	return bom
}

// module returns a module as a component, by what replaces it. The checksum that go.sum has is of
// the module's files, not of one file, and is therefore no hash of the component.
func module(m *debug.Module) cyclonedx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	version := cmp.Or(m.Version, "(devel)")
	purl := "pkg:golang/" + m.Path + "@" + version
	if version == "(devel)" {
		purl = "pkg:golang/" + m.Path
	}
	c := cyclonedx.Component{Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, Name: m.Path, Version: version, PackageURL: purl}
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}
