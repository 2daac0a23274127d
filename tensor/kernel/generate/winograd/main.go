// Command winograd writes the assembly of package kernel that transforms patches, and its Go stubs:
// AVX2 or, with -avx512, AVX-512.
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
		assembly.WinogradAVX512()
	} else {
		assembly.WinogradAVX2()
	}
	build.Generate()
}
