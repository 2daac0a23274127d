#!/usr/bin/env bash
# Checks Pollen on this machine's GPU: gpu-check.sh OUT. Ten minutes at most; logs, summary.json and the benchmarks' record gpu.json go to OUT.
#
#   GPU_CHECK_SECONDS      the time for everything, 570 unless set
#   GPU_CHECK_TESTS        the tests to run, a regular expression; all unless set
#   GPU_CHECK_TRAIN        arguments of the training; a short one on MNIST unless set
#   GPU_CHECK_BENCHMARKS   arguments of the benchmarks
#   POLLEN_CUDA_DRIVER     another driver library, as the emulated one
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:?gpu-check.sh wants a folder for its results}
mkdir -p "$out"
out=$(cd "$out" && pwd)
end=$(($(date +%s) + ${GPU_CHECK_SECONDS:-570}))
tests=${GPU_CHECK_TESTS:-.}
training=${GPU_CHECK_TRAIN:---data mnist --model lenet-small --epochs 2 --samples 2 --burn-in 1 --chains 4}
export POLLEN_TEST_DEVICE=cuda POLLEN_DATA="$here/data"
# What the host alone promises: steps without an allocation, and Adam's bits of the interpreter.
skipped='Allocate|TestBitsDoNotDependOnTheRun/adam'
failed=0
results=()

left() { echo $((end - $(date +%s))); }

# check NAME SECONDS FOLDER COMMAND...: runs a command in a folder for so long at most, and no longer than there is time.
check() {
  local name=$1 limit=$2 folder=$3 begin status remaining verdict
  shift 3
  remaining=$(left)
  ((limit > remaining)) && limit=$remaining
  if ((limit < 5)); then
    echo "$name: no time left"
    results+=("{\"name\":\"$name\",\"status\":\"no time left\"}")
    failed=1
    return 1
  fi
  begin=$(date +%s)
  (cd "$folder" && timeout -k 5 "$limit" "$@") >"$out/$name.log" 2>&1
  status=$?
  case $status in
    0) verdict="passed, $(grep -c -- '--- PASS' "$out/$name.log") tests, $(grep -c -- '--- SKIP' "$out/$name.log") skipped" ;;
    124 | 137) verdict="stopped after $limit s" ;;
    *) verdict="failed with $status" ;;
  esac
  echo "$name: $verdict, $(($(date +%s) - begin)) s"
  results+=("{\"name\":\"$name\",\"status\":\"$verdict\",\"seconds\":$(($(date +%s) - begin))}")
  ((status == 0)) && return 0
  failed=1
  tail -n 20 "$out/$name.log"
  return 1
}

summary() {
  local IFS=,
  printf '{"date":"%s","machine":"%s","checks":[%s]}\n' "$(date -u +%FT%TZ)" "$(uname -srm)" "${results[*]}" >"$out/summary.json"
}

work=$(mktemp -d)
trap 'summary; rm -rf "$work"' EXIT

check devices 60 "$here" ./train devices
cat "$out/devices.log"
if ! grep -q '^cuda:' "$out/devices.log"; then
  echo "there is no GPU to check"
  failed=1
  exit 1
fi
command -v nvidia-smi >/dev/null && check nvidia-smi 30 "$here" nvidia-smi
# Left out here is what needs the sources or is about the emulated driver.
check conformance 150 "$here/cuda" "$here/cuda.test" -test.run "$tests" -test.v \
  -test.skip 'TestFailuresBelow|TestMemoryComesBack|TestLinkedDriver|TestSanitizers|TestKernelsAndLaunches|TestMatches'
check optimizers 60 "$here/optimizers" "$here/optimizers.test" -test.run "$tests" -test.skip "$skipped" -test.v
check samplers 150 "$here/langevin" "$here/langevin.test" -test.run "$tests" -test.skip "$skipped" -test.v
# shellcheck disable=SC2086
check training 60 "$here" ./train fit --device cuda --folder "$work/run" $training
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    check "$tool" 60 "$here" compute-sanitizer --tool "$tool" --error-exitcode 1 \
      ./cuda.test -test.run 'TestTrainingIsTheHosts/psgld'
  done
else
  echo "compute-sanitizer is not installed: left out"
fi
# shellcheck disable=SC2086
check benchmarks 600 "$here" ./benchmarks gpu --rounds 3 --budget "$(($(left) - 30))s" --json "$out/gpu.json" ${GPU_CHECK_BENCHMARKS:-}
cat "$out/benchmarks.log"
exit $failed
