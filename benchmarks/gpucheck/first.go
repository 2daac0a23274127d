package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The variables that switch features off; docs/cuda.md lists them.
const (
	capability70 = "POLLEN_CUDA_CAPABILITY=70"
	capability80 = "POLLEN_CUDA_CAPABILITY=80"
	noGraphs     = "POLLEN_CUDA_GRAPHS=off"
	slowGraphs   = "POLLEN_CUDA_GRAPHS=slow"
	noPDL        = "POLLEN_CUDA_PDL=off"
	noWgmma      = "POLLEN_CUDA_WGMMA=off"
	noPacked     = "POLLEN_CUDA_PACKED=off"
	noWindows    = "POLLEN_CUDA_WINDOWS=off"
)

// ladder has the rungs: each needs one feature more than those before. A rung's environment
// switches off the features of later rungs, so that only its own can make it fail.
var ladder = []struct {
	name, feature, tests string
	env, off             []string
}{
	{
		name: "rung-open", feature: "opening, memory and copies",
		tests: "^TestManyMetrics$",
		env:   []string{capability70, slowGraphs},
	},
	{
		name: "rung-plain", feature: "plain kernels",
		tests: "^TestConformance$/^(relu|matmul|conv2d|softmax|sum)",
		env:   []string{capability70, noGraphs},
	},
	{
		name: "rung-async", feature: "float32 products with asynchronous copies",
		tests: "^TestProductTiles$/^fp32$",
		env:   []string{capability80, noGraphs}, off: []string{capability70},
	},
	{
		name: "rung-mma", feature: "tf32 and bf16 products (mma.sync)",
		tests: "^(TestProductTiles|TestSlicesSideBySide)$/^(tf32|bf16)",
		env:   []string{capability80, noGraphs}, off: []string{capability70},
	},
	{
		name: "rung-packed", feature: "packed convolutions (ldmatrix)",
		tests: "^TestPackedConvolutions$",
		env:   []string{capability80, noGraphs, noWindows}, off: []string{noPacked},
	},
	{
		name: "rung-operands", feature: "the operands of wgmma",
		tests: "^TestProbeGroupOperands$",
		env:   []string{noGraphs, noWindows}, off: []string{noWgmma},
	},
	{
		name: "rung-wgmma", feature: "wgmma, forward and by the image",
		tests: "^TestGroupedConvolutions$",
		env:   []string{noGraphs, noWindows}, off: []string{noWgmma},
	},
	{
		name: "rung-filter", feature: "wgmma, by the filter",
		tests: "^TestGroupedFilters$",
		env:   []string{noGraphs, noWindows}, off: []string{noWgmma},
	},
	{
		name: "rung-windows", feature: "sums over pooling windows",
		tests: "^(TestWindows|TestPoolingInTheEpilogue|TestCopiesOfMaxima)$",
		env:   []string{noGraphs}, off: []string{noWindows},
	},
	{
		name: "rung-graphs", feature: "CUDA graphs",
		tests: "^(TestTrainingIsTheHosts|TestNetworksPool)$",
		env:   []string{noPDL}, off: []string{noGraphs},
	},
	{
		name: "rung-early", feature: "programmatic dependent launch",
		tests: "^(TestTrainingIsTheHosts|TestNetworksPool)$",
		off:   []string{noPDL},
	},
	{
		name: "rung-training", feature: "training in bf16",
		tests: "^TestPrecisions$",
	},
}

// rungSeconds is the time limit of a rung. Tests shorten it.
var rungSeconds = 20

// compileShards is the number of processes that compile the kernels.
const compileShards = 16

// firstLight is the first call: correctness, and the time of everything.
func firstLight(r *runner) {
	if !r.machine() {
		return
	}
	r.compile("compile.txt")
	for _, rung := range ladder {
		v := r.check(r.test("cuda", rung.name, rung.tests, rungSeconds, func(c *check) {
			c.feature, c.env, c.off = rung.feature, rung.env, rung.off
		}))
		if rung.name == "rung-open" && v.failed() {
			return // nothing else can run
		}
	}
	steps := []string{"--steps", "mnist-64-64-256:100,mlp-100:500", "--precisions", "bf16,tf32,fp32", "--chains", "1,64"}
	calls := []string{"--steps", "mnist-64-64-256:100,mlp-100:500", "--precisions", "bf16", "--chains", "1,64"}
	if r.emulated {
		steps = []string{"--steps", "mlp-10:4", "--precisions", "bf16", "--chains", "1,2"}
		calls = steps
	}
	r.benchmark("steps", 70, "steps.json", append(steps, "--work", "steps", "--peers", "", "--variants", "default,late,line,nowgmma")...)
	r.benchmark("calls", 40, "calls.json", append(calls, "--work", "calls", "--peers", "")...)
	r.conformance()
	if !r.emulated {
		r.benchmark("peers", 60, "peers.json", append(calls, "--work", "steps", "--peers", "torch-graph,jax")...)
	}
}

// gpuProperties are the properties that nvidia-smi reports of a GPU in a line.
const gpuProperties = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,clocks.sm,power.limit," +
	"ecc.mode.current,mig.mode.current"

// machine records the machine's properties, and reports whether it has a GPU.
func (r *runner) machine() bool {
	for name, command := range map[string][]string{
		"gpu":       {"nvidia-smi", "--query-gpu=" + gpuProperties, "--format=csv,noheader"},
		"kernel":    {"uname", "-srm"},
		"processor": {"sh", "-c", "grep -m1 'model name' /proc/cpuinfo | cut -d: -f2; nproc"},
		"driver":    {"sh", "-c", "ls /usr/local/nvidia/lib64 2>/dev/null | head -60"},
		"python":    {r.python, "-c", "import torch, jax, triton; print('PyTorch', torch.__version__, 'JAX', jax.__version__, 'Triton', triton.__version__)"},
	} {
		ctx, cancel := context.WithTimeout(r.ctx, 30*time.Second)
		out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput()
		cancel()
		text := strings.TrimSpace(string(out))
		if err != nil {
			text = strings.TrimSpace(text + " (" + err.Error() + ")")
		}
		r.record.Machine[name] = text[:min(len(text), 2000)]
	}
	r.say("machine: %v; %v", r.record.Machine["gpu"], r.record.Machine["python"])
	r.check(check{name: "nvidia-smi", limit: 10 * time.Second, command: []string{"nvidia-smi", "-q"}, excuses: []string{noProgram}})
	v := r.check(check{name: "devices", limit: 20 * time.Second, command: []string{"pollen", "devices"}})
	devices := strings.Join(strings.Fields(v.outputTail), " ")
	r.record.Machine["devices"] = devices
	if !v.failed() && !strings.HasPrefix(v.Status, "left out") && !strings.Contains(devices, "cuda:") {
		v.Check, v.Status = "a GPU", "failed: there is none"
		r.enter(check{name: "a GPU"}, v)
	}
	return !v.failed()
}

// compile has the driver compile all kernels, in many processes, so that later checks find them in
// the driver's cache. The driver's output also goes to a file of OUT, unless its name is empty.
func (r *runner) compile(file string) {
	var shards []check
	n := compileShards
	if r.emulated {
		n = 2
	}
	for i := range n {
		shards = append(shards, r.test("cuda", fmt.Sprintf("compile-%d", i), "^TestCompile$", 60, func(c *check) {
			c.env, c.output = []string{fmt.Sprintf("POLLEN_TEST_SHARD=%d/%d", i, n)}, file
		}))
	}
	r.parallel(n, shards)
}

// leftOut matches tests of the host only, of the sources, or of the emulated driver; and tests that
// are separate checks.
const leftOut = "Allocate|TestFailuresBelow|TestMemoryComesBack|TestLinkedDriver|TestSanitizers|TestKernelsAndLaunches|TestMatches|" +
	"TestCompile$|TestCalibrate|TestMeasureGraphs"

// test returns a check that runs tests of a package.
func (r *runner) test(pkg, name, tests string, seconds int, more ...func(*check)) check {
	// Tests that are requested by name are not left out.
	skip := slices.DeleteFunc(strings.Split(leftOut, "|"), func(one string) bool { return strings.Contains(tests, strings.TrimSuffix(one, "$")) })
	c := check{
		name: name, limit: time.Duration(seconds) * time.Second, dir: pkg,
		command: []string{pkg + ".test", "-test.run", tests, "-test.skip", strings.Join(skip, "|"), "-test.v", "-test.timeout", fmt.Sprintf("%ds", seconds)},
	}
	if r.emulated {
		c.limit *= emulatedPatience
		c.command[len(c.command)-1] = fmt.Sprintf("%ds", seconds*emulatedPatience)
	}
	for _, m := range more {
		m(&c)
	}
	return c
}

// emulatedPatience multiplies time limits on the emulated GPU.
const emulatedPatience = 6

// benchmark runs command benchmarks until it is done: after an error that loses the GPU, it is
// started again and continues after the comparison that failed.
func (r *runner) benchmark(name string, seconds int, file string, arguments ...string) {
	const attempts, grace = 6, 15 * time.Second
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	for attempt := range attempts {
		limit := time.Until(end)
		if r.emulated {
			limit = time.Minute
		}
		limit = min(limit, time.Until(r.end)-grace)
		if limit < 2*time.Second {
			if attempt == 0 && r.wants(name) {
				r.enter(check{name: name}, verdict{Check: name, Status: noTime})
			}
			return
		}
		command := []string{"benchmarks", "gpu", "--python", r.python, "--budget", limit.Round(time.Second).String(), "--json", filepath.Join(r.out, file)}
		if r.emulated {
			command = append(command, "--peer-device", "cpu", "--rounds", "1", "--repetitions", "2")
		} else {
			command = append(command, "--rounds", "3", "--patience", "45s")
		}
		own := name
		if attempt > 0 {
			own, command = fmt.Sprintf("%s-%d", name, attempt), append(command, "--resume")
		}
		// The command stops at its budget; the limit is for one that hangs.
		v := r.check(check{name: own, limit: limit + grace, command: append(command, arguments...)})
		if !strings.Contains(v.Status, fmt.Sprintf("exit status %d", lostStatus)) {
			return
		}
	}
}

// lostStatus is the exit status of command benchmarks after it has lost its GPU.
const lostStatus = 3

// conformance runs the tests of package cuda, one process each, in parallel with the tests of the
// samplers.
func (r *runner) conformance() {
	list := exec.CommandContext(r.ctx, filepath.Join(r.packed, "cuda.test"), "-test.list", ".")
	list.Dir = filepath.Join(r.packed, "cuda")
	out, err := list.Output()
	if err != nil {
		status := "failed: " + err.Error()
		if r.ctx.Err() != nil {
			status = noTime
		}
		r.enter(check{name: "conformance"}, verdict{Check: "conformance", Status: status})
		return
	}
	var checks []check
	const shards = 12
	for i := range shards {
		checks = append(checks, r.test("cuda", fmt.Sprintf("conformance-%d", i), "^TestConformance$", 60, func(c *check) {
			c.env = []string{fmt.Sprintf("POLLEN_TEST_SHARD=%d/%d", i, shards)}
		}))
	}
	samplers := "."
	if r.emulated {
		samplers = samplerTests()
		checks = checks[:1]
	}
	for _, pkg := range samplerPackages {
		if r.emulated && pkg == "samples" {
			continue // samplerTests selects none of its tests
		}
		checks = append(checks, r.test(pkg, pkg, samplers, 100))
	}
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Test") && name != "TestConformance" && !isLeftOut(name) && !r.emulated {
			checks = append(checks, r.test("cuda", name, "^"+name+"$", 60))
		}
	}
	r.parallel(8, checks)
	r.again(checks)
}

// again repeats each failed test of a check that lost the GPU, in a separate process: it may have
// failed only because an earlier test had lost the GPU.
func (r *runner) again(checks []check) {
	r.mu.Lock()
	verdicts := slices.Clone(r.record.Checks)
	r.mu.Unlock()
	var single []check
	for _, v := range verdicts {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == v.Check })
		if !v.lost || i < 0 {
			continue
		}
		for _, failure := range v.Failures {
			test, _, _ := strings.Cut(failure, ": ")
			c := checks[i]
			c.name, c.command = c.name+" "+test, slices.Clone(c.command)
			c.command[2] = exactly(test)
			single = append(single, c)
		}
	}
	r.parallel(8, single)
}

// exactly returns the pattern for -test.run that selects one test or subtest.
func exactly(test string) string {
	var levels []string
	for _, level := range strings.Split(test, "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	return strings.Join(levels, "/")
}

func isLeftOut(test string) bool { return regexp.MustCompile(leftOut).MatchString(test) }
