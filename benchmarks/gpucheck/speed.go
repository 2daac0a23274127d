package main

import (
	"path/filepath"
	"strings"
	"time"
)

// counters are the counters that Nsight Compute reads for each kernel.
var counters = []string{
	"gpu__time_duration.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__inst_issued.avg.pct_of_peak_sustained_active",
	"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", "sm__warps_active.avg.pct_of_peak_sustained_active",
	"dram__throughput.avg.pct_of_peak_sustained_elapsed", "lts__t_bytes.sum", "dram__bytes.sum",
	"l1tex__data_bank_conflicts_pipe_lsu.sum", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
	"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "launch__occupancy_limit_registers", "launch__registers_per_thread",
}

// speed is the second call: the same work in PyTorch and JAX, hardware counters, and how it scales.
func speed(r *runner) {
	if !r.machine() {
		return
	}
	r.compile("")
	main, all := "mnist-64-64-256:100", "mnist-64-64-256:100,mlp-100:500"
	one, many, chains, updates, batches := "1", "1,64", "1,8,64,256,1024", "1048576,52428800", "100"
	training := []string{"--data", "glyphs", "--model", "mnist-64-64-256", "--epochs", "3", "--samples", "1", "--burn-in", "0",
		"--chains", "8", "--precision", "bf16"}
	trainingLimit := 60 * time.Second
	if r.emulated {
		main, all, one, many, chains, updates, batches = "mlp-10:4", "mlp-10:4", "1", "1,2", "1,2,4", "1000", "1"
		training = []string{"--data", "glyphs", "--model", "mlp-10", "--epochs", "1", "--samples", "1", "--burn-in", "0", "--chains", "2", "--batch", "1000"}
		trainingLimit *= emulatedPatience
	}
	r.benchmark("peers-bf16", 150, "peers.json", "--work", "steps", "--steps", all, "--precisions", "bf16", "--chains", many)
	r.check(check{
		name: "counters", limit: 60 * time.Second, excuses: []string{noProgram}, env: []string{noGraphs},
		command: []string{
			"ncu", "--clock-control", "none", "--csv", "--log-file", filepath.Join(r.out, "counters.csv"), "--launch-skip", "200", "--launch-count", "30",
			"--metrics", strings.Join(counters, ","), filepath.Join(r.packed, "benchmarks"), "gpu", "--work", "steps", "--steps", main,
			"--precisions", "bf16", "--chains", "64", "--peers", "", "--rounds", "1", "--budget", "20s",
		},
	})
	r.benchmark("scaling", 40, "scaling.json", "--work", "steps", "--steps", main, "--precisions", "bf16", "--chains", chains, "--peers", "")
	r.benchmark("updates", 30, "updates.json", "--work", "updates,convolutions", "--updates", updates, "--batches", batches, "--precisions", "bf16")
	training = append([]string{"pollen", "fit", "--device", "cuda", "--folder", filepath.Join(r.work, "run")}, training...)
	r.check(check{name: "training", limit: trainingLimit, command: training})
	if !r.emulated {
		r.check(r.test("cuda", "sanitizer", "^TestGroupedConvolutions$", 45, func(c *check) {
			c.excuses = []string{noProgram, "Device not supported"}
			c.command = append([]string{"compute-sanitizer", "--error-exitcode", "1", filepath.Join(r.packed, c.command[0])}, c.command[1:]...)
		}))
	}
	r.check(r.test("cuda", "calibration", "^TestCalibrate$", 40, func(c *check) {
		c.env = []string{"POLLEN_CALIBRATION=" + filepath.Join(r.out, "calibration.json"), "POLLEN_CALIBRATION_ONLY=bf16"}
		if r.emulated {
			c.env = append(c.env, "POLLEN_CALIBRATION_SIZE=32")
		}
	}))
	r.benchmark("peers-rest", 120, "peers.json", "--resume", "--work", "steps", "--steps", all, "--precisions", "tf32,fp32", "--chains", one)
}
