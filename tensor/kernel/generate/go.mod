module github.com/pollen-ml/pollen/tensor/kernel/generate

go 1.26

require (
	github.com/mmcloughlin/avo v0.6.0
	golang.org/x/tools v0.42.0 // indirect; older ones do not compile with Go 1.26
)

require (
	golang.org/x/mod v0.33.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
)
