module github.com/pollen-ml/pollen/datasets/glyphs/generate

go 1.26

require (
	codeberg.org/go-fonts/dejavu v0.4.0
	codeberg.org/go-fonts/latin-modern v0.4.0
	codeberg.org/go-fonts/liberation v0.5.0
	codeberg.org/go-fonts/stix v0.3.0
	eliasnaur.com/font v0.0.0-20230308162249-dd43949cb42d
	github.com/pkg/errors v0.9.1
	golang.org/x/image v0.45.0
)

require (
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)
