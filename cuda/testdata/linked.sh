#!/usr/bin/env bash
# Compiles the device on gorgonia.org/cu (-tags cu) where there is no CUDA toolkit, and runs the tests on the emulated driver given as argument.
# The header is the one in cu's own module, without the system's types at its top, with what were macros: constants, and the second versions of
# calls. What cu declares of the driver and the emulator lacks stays unresolved: nothing calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
driver=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  printf '#pragma once\n#include <stdint.h>\n#include <stdlib.h>\n'
  printf '#define CU_TRSF_READ_AS_INTEGER 0x01\n#define CU_TRSF_NORMALIZED_COORDINATES 0x02\n'
  for name in cuDeviceTotalMem cuDevicePrimaryCtxRelease cuMemGetInfo cuMemAlloc cuMemFree cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyDtoDAsync \
    cuStreamDestroy; do
    printf '#define %s %s_v2\n' $name $name
  done
  sed -n '/^typedef uint32_t cuuint32_t;/,$p' "$(go list -m -f '{{.Dir}}' gorgonia.org/cu)/cmd/genlib/cuda.h"
} >"$work/cuda.h"
cp "$driver" "$work/libcuda.so"
ln -s libcuda.so "$work/libcuda.so.1"
export POLLEN_TEST_DEVICE=cuda CGO_ENABLED=1 CGO_CFLAGS="-I$work" CGO_LDFLAGS="-L$work -Wl,--unresolved-symbols=ignore-all -Wl,-z,lazy" LD_LIBRARY_PATH="$work"
go vet -tags cu .
go test -tags cu "${@:2}" .
