#!/usr/bin/env bash
# Checks Pollen on this machine's GPU, within ten minutes: gpu-check.sh [--emulated] OUT. OUT gets record.json, with everything, and log.txt.
# The exit status is 1 if anything failed. --emulated tries all of it, on small sizes, on the emulated GPU beside this script (gpucheck --emulated).
#
#   GPU_CHECK_SECONDS   the time for everything, 570 unless set
#   GPU_CHECK_PATIENCE  what all time limits are multiplied by, where the machine is busy with other things: 1
#   GPU_CHECK_ONLY      the names of the checks to make, all unless set
#   GPU_CHECK_PYTHON    the Python that has PyTorch and JAX, python3 unless set
#
# It needs bash and coreutils. What is not installed beside these is said; a Python without the peers is a failure.
set -u
here=$(cd "$(dirname "$0")" && pwd)
emulated=false
[[ ${1:-} == --emulated ]] && emulated=true && shift
out=${1:?gpu-check.sh wants a folder for its results}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 1
python=${GPU_CHECK_PYTHON:-python3}
patience=${GPU_CHECK_PATIENCE:-1}
end=$((SECONDS + patience * ${GPU_CHECK_SECONDS:-570}))
# Tests that are left out: what the host alone promises, which is steps without an allocation; what needs the sources; what is about the emulated driver.
skip='Allocate|TestFailuresBelow|TestMemoryComesBack|TestLinkedDriver|TestSanitizers|TestKernelsAndLaunches|TestMatches'
conformance=. samplers=. sampling=150 side=4096 cap=16 reserve=150
training=(--data mnist --model lenet-small --epochs 2 --samples 2 --burn-in 1 --chains 4)
benchmarks=(--rounds 3 --steps mnist-64-64-256:100,mlp-100:500 --chains 64,1)
# What is timed besides if there is time left, as with a large GPU_CHECK_SECONDS.
more=(--rounds 3 --work steps --steps mnist-64-64-256:1024 --chains 64,1,8) eight=(--rounds 3 --work steps --steps mnist-64-64-256:100,mlp-100:500 --chains 8)
export POLLEN_TEST_DEVICE=cuda POLLEN_DATA="$here/data"
if $emulated; then
  export POLLEN_TEST_DEVICE=emulator POLLEN_EMULATOR="$here/libemulator.so" POLLEN_CUDA_DRIVER="$here/libemulator.so"
  conformance='^(TestConformance|TestUpdatesAreTheHosts|TestNotFiniteIsExplained)$' side=32 reserve=$((90 * patience))
  samplers=$(<"$here/emulated-samplers.txt") sampling=240
  training=(--data glyphs --model mlp-10 --epochs 1 --samples 1 --burn-in 0 --chains 2 --batch 1000)
  benchmarks=(--rounds 1 --steps mlp-10:4 --chains 1,2 --updates 1000 --batches 1 --precisions fp32 --peer-device cpu)
fi
work=$(mktemp -d 2>/dev/null || mktemp -d "$out/work.XXXXXX") || exit 1
# Where containers put the driver and its tools, after all that the machine says itself.
export PATH="$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64:/usr/lib/wsl/lib"
# What is compiled is kept here, the peers' too: there may be no home, and no name for the user.
mkdir "$work/cache"
export CUDA_CACHE_PATH="$work/cache" CUDA_CACHE_MAXSIZE=2147483648
export TRITON_CACHE_DIR="$work/triton" TORCHINDUCTOR_CACHE_DIR="$work/inductor" HOME="${HOME:-$work}" USER="${USER:-$(id -un 2>/dev/null || echo nobody)}"
failed=0 checks=() log="$out/log.txt"
: >"$log"

say() { printf '%s\n' "$*" | tee -a "$log"; }

# note NAME STATUS SECONDS: an entry of the record.
note() {
  say "$1: $2, $3 s"
  checks+=("{\"check\":\"$1\",\"status\":\"$2\",\"seconds\":$3}")
  record
}

# lines TEXT FILE: how many lines of a file begin with the text, after spaces.
lines() {
  local n=0 line
  while read -r line; do [[ $line == "$1"* ]] && n=$((n + 1)); done <"$2"
  echo $n
}

# check NAME SECONDS FOLDER COMMAND...: runs a command in a folder for so long at most, and leaves time for what follows. One that fails saying $excuse,
# if that is set, cannot be done on this machine.
excuse=
check() {
  local name=$1 limit=$((patience * $2)) folder=$3 begin=$SECONDS status verdict
  shift 3
  [[ -n ${GPU_CHECK_ONLY:-} && " $GPU_CHECK_ONLY " != *" $name "* ]] && return 0
  local remaining=$((end - SECONDS - reserve))
  ((limit > remaining)) && limit=$remaining
  if ((limit < 5)); then
    failed=1
    note "$name" "cut: no time left" 0
    return 1
  fi
  (cd "$folder" && timeout -k 5 "$limit" "$@") >"$work/$name.log" 2>&1
  status=$?
  case $status in
    0) verdict=passed ;;
    124 | 137) verdict="cut: stopped after $limit s" ;;
    *) verdict="failed with $status" ;;
  esac
  if ((status != 0)) && [[ -n $excuse && $(<"$work/$name.log") == *"$excuse"* ]]; then
    verdict="left out: $excuse"
    status=0
  fi
  local tests
  tests=$(lines '--- PASS' "$work/$name.log")
  ((tests > 0)) && verdict+=", $tests tests passed, $(lines '--- SKIP' "$work/$name.log") skipped, $(lines '--- FAIL' "$work/$name.log") failed"
  ((status == 0)) || failed=1
  note "$name" "$verdict" $((SECONDS - begin))
  { echo "== $name: $*"; head -c 4000000 "$work/$name.log"; } >>"$log"
  ((status == 0)) && return 0
  tail -n 15 "$work/$name.log"
  return 1
}

# content FILE: JSON, or null.
content() { if [[ -s $1 ]]; then cat "$1"; else echo null; fi; }

# record writes all that is known so far, after each check: whatever stops the machine, the checks before stay.
record() {
  local IFS=,
  {
    printf '{"date":"%s","machine":"%s","emulated":%s,"failed":%s,"checks":[%s],\n"calibration":' \
      "$(date -u +%FT%TZ)" "$(uname -srm)" $emulated $failed "${checks[*]}"
    content "$work/tiles.json"
    printf ',\n"graphs":'
    content "$work/graphs.json"
    local name
    for name in benchmarks more eight; do
      printf ',\n"%s":' "$name"
      content "$work/$name.json"
    done
    echo '}'
  } >"$out/record.new" && mv -f "$out/record.new" "$out/record.json"
}
ending() {
  record
  rm -rf "$work"
  say "written: $out/record.json"
}
trap ending EXIT

check devices 60 "$here" ./train devices || exit 1
[[ -s $work/devices.log ]] && cat "$work/devices.log"
if [[ -e $work/devices.log && $(lines cuda: "$work/devices.log") == 0 ]]; then
  failed=1
  note GPU "failed: there is none" 0
  exit 1
fi
command -v nvidia-smi >/dev/null && check nvidia-smi 30 "$here" nvidia-smi
check compile 120 "$here/cuda" "$here/cuda.test" -test.run '^TestCompile$' -test.v
check training 60 "$here" ./train fit --device cuda --folder "$work/run" "${training[@]}"
check conformance 120 "$here/cuda" "$here/cuda.test" -test.run "$conformance" -test.skip "$skip" -test.v
# The samplers' packages one after the other: one that fails leaves the others.
check samplers "$sampling" "$here" bash -c 'failed=0
for package in langevin metropolis approximate diagnostics samples; do
  (cd "$package" && "../$package.test" -test.run "$1" -test.skip "$2" -test.v) || failed=1
done
exit $failed' samplers "$samplers" "$skip"
if command -v compute-sanitizer >/dev/null; then
  excuse='Device not supported'
  for tool in memcheck racecheck; do
    check "$tool" 45 "$here/cuda" compute-sanitizer --tool "$tool" --error-exitcode 1 "$here/cuda.test" -test.run 'TestTrainingIsTheHosts/psgld'
  done
  excuse=
else
  note sanitizer "left out: compute-sanitizer is not installed" 0
fi
POLLEN_CALIBRATION="$work/tiles.json" POLLEN_CALIBRATION_SIZE=$side check calibration 45 "$here/cuda" "$here/cuda.test" -test.run '^TestCalibrate$' -test.v
POLLEN_GRAPHS="$work/graphs.json" POLLEN_CALIBRATION_SIZE=$side check graphs 60 "$here/cuda" "$here/cuda.test" -test.run '^TestMeasureGraphs$' -test.v
check peers 60 "$here" "$python" -c 'import torch, jax; print("PyTorch", torch.__version__, "JAX", jax.__version__)'
reserve=0
for name in benchmarks eight more; do
  declare -n flags=$name
  budget=$((end - SECONDS - 45))
  [[ $name != benchmarks ]] && { $emulated || ((budget < 60)); } && continue
  check "$name" 3600 "$here" ./benchmarks gpu --python "$python" --budget "${budget}s" --json "$work/$name.json" "${flags[@]}"
done
exit $failed
