// Command generate writes the assembly of package random, in AVX2 or, with -avx512, AVX-512 (F and
// DQ). It is a module of its own, so that users of Pollen do not depend on the assembler. Run it in
// this directory:
//
//	go run main.go -out ../normal_avx2_amd64.s -stubs ../normal_avx2_amd64.go -pkg random
//	go run main.go -avx512 -out ../normal_avx512_amd64.s -stubs ../normal_avx512_amd64.go -pkg random
package main

import (
	"flag"

	"github.com/pollen-ml/pollen/tensor/random/generate/assembly"
)

func main() {
	avx512 := flag.Bool("avx512", false, "write AVX-512, not AVX2")
	flag.Parse()
	assembly.Write(*avx512)
}
