//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Written by hand: each function is AVX-512's or AVX2's, which finds the arguments where they are.

TEXT ·multiplyTiles(SB), NOSPLIT, $0-96
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·multiplyTilesAVX2(SB)

wide:
	JMP ·multiplyTilesAVX512(SB)

TEXT ·multiplyWindows(SB), NOSPLIT, $0-96
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·multiplyWindowsAVX2(SB)

wide:
	JMP ·multiplyWindowsAVX512(SB)

TEXT ·multiplyPanels(SB), NOSPLIT, $0-73
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·multiplyPanelsAVX2(SB)

wide:
	JMP ·multiplyPanelsAVX512(SB)

TEXT ·scatter(SB), NOSPLIT, $0-80
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·scatterAVX2(SB)

wide:
	JMP ·scatterAVX512(SB)

TEXT ·multiplyLines(SB), NOSPLIT, $0-105
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·accumulateLinesAVX2(SB)

wide:
	JMP ·accumulateLinesAVX512(SB)

TEXT ·windowRuns(SB), NOSPLIT, $0-40
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·windowRunsAVX2(SB)

wide:
	JMP ·windowRunsAVX512(SB)

TEXT ·windowGather(SB), NOSPLIT, $0-40
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·windowGatherAVX2(SB)

wide:
	JMP ·windowGatherAVX512(SB)

TEXT ·maxPlanes(SB), NOSPLIT, $0-68
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·maxPlanesAVX2(SB)

wide:
	JMP ·maxPlanesAVX512(SB)

TEXT ·notePlaces(SB), NOSPLIT, $0-64
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·notePlacesAVX2(SB)

wide:
	JMP ·notePlacesAVX512(SB)

TEXT ·spreadPlaces(SB), NOSPLIT, $0-76
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·spreadPlacesAVX2(SB)

wide:
	JMP ·spreadPlacesAVX512(SB)

TEXT ·sumRows(SB), NOSPLIT, $0-40
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·sumRowsAVX2(SB)

wide:
	JMP ·sumRowsAVX512(SB)

TEXT ·scaleBytes(SB), NOSPLIT, $0-32
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·scaleBytesAVX2(SB)

wide:
	JMP ·scaleBytesAVX512(SB)

TEXT ·tapSums(SB), NOSPLIT, $0-56
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·tapSumsAVX2(SB)

wide:
	JMP ·tapSumsAVX512(SB)

TEXT ·tapProductsOf(SB), NOSPLIT, $0-49
	CMPQ ·isa(SB), $const_avx512
	JEQ  wide
	JMP  ·tapProductsOfAVX2(SB)

wide:
	JMP ·tapProductsOfAVX512(SB)
