// Command generate writes the assembly of package kernel and its Go stubs: AVX2 with FMA or, with
// -avx512, AVX-512. It is a module of its own, so that Pollen does not depend on avo.
package main

import (
	"flag"

	"github.com/mmcloughlin/avo/build"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/assembly"
)

func main() {
	avx512 := flag.Bool("avx512", false, "write the AVX-512 functions instead of the AVX2 ones")
	flag.Parse()
	if *avx512 {
		assembly.AVX512()
	} else {
		assembly.AVX2()
	}
	build.Generate()
}
