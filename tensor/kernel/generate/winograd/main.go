// Command winograd writes the assembly of package kernel that transforms patches, and its Go stubs.
package main

import (
	"github.com/mmcloughlin/avo/build"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/assembly"
)

func main() {
	assembly.Winograd()
	build.Generate()
}
