// Command generate writes the AVX2 and FMA assembly of package kernel and its
// Go stubs. It is a module of its own, so that avo is no dependency of Pollen.
package main

import (
	"github.com/mmcloughlin/avo/build"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/assembly"
)

func main() {
	assembly.All()
	build.Generate()
}
