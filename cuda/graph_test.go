package cuda_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestGraphsAreShort: on a H200 less than half of a step's calls follow one another, and that costs
// little memory.
func TestGraphsAreShort(t *testing.T) {
	device := cudatest.GPU(t, cuda.Options{})
	if cuda.Capability(device) < 80 {
		t.Skipf("%s has other tiles", device.Name())
	}
	for _, c := range []struct {
		network     string
		chains      int
		nodes, path int // at most
		scratch     int // likewise, in kB
	}{
		{"lenet-small", 1, 41, 22, 5600}, {"lenet-small", 64, 37, 19, 5100},
		{"mnist-64-64-256", 1, 41, 21, 55500}, {"mnist-64-64-256", 64, 37, 18, 42500},
		{"mlp-400-400", 1, 30, 17, 3550}, {"mlp-400-400", 64, 26, 13, 2400},
		{"resnet20-frn", 1, 490, 195, 160000},
	} {
		const steps = 3
		p := &cuda.Planner{Device: device, Multiprocessors: 132, Chains: c.chains, Steps: steps}
		if _, err := network(t, c.network, "sgld", 1000, 100).Load(p, graph.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, %d chains, %d steps: %d nodes, %d edges, %d after one another; scratch memory %d bytes, of a schedule for %d",
			c.network, c.chains, steps, p.Nodes, p.Edges, p.Path, p.Scratch, p.Workload)
		if p.Nodes > steps*c.nodes || p.Path > steps*c.path || p.Edges > 2*p.Nodes {
			t.Errorf("wants for each step at most %d nodes, %d after one another, and an edge or two for each node", c.nodes, c.path)
		}
		if p.Scratch > 1000*c.scratch {
			t.Errorf("scratch memory: wants at most %d kB", c.scratch)
		}
	}
}

// stepTime is how long a step takes as part of a CUDA graph whose calls follow only those that they
// must follow, and of one in which each follows the one before.
type stepTime struct {
	Network   string  `json:"network"`
	Batch     int     `json:"batch"`
	Chains    int     `json:"chains"`
	Precision string  `json:"precision"`
	Calls     int     `json:"calls"`
	Path      int     `json:"calls that follow one another"`
	Graph     float64 `json:"microseconds"`
	Line      float64 `json:"microseconds in line"`
}

// TestMeasureGraphs times steps both ways, if POLLEN_GRAPHS names the file for the results, and
// compares the resulting chains, to the bit. A POLLEN_CALIBRATION_SIZE below wholeSize makes
// batches that much smaller and steps fewer.
func TestMeasureGraphs(t *testing.T) {
	size, save := measurement(t, "POLLEN_GRAPHS", "steps as CUDA graphs")
	precisions := []cuda.Precision{cuda.FP32, cuda.TF32}
	if size < wholeSize {
		precisions = precisions[:1]
	}
	var all []stepTime
	for _, precision := range precisions {
		for _, name := range []string{"lenet-small", "mnist-64-64-256", "mlp-400-400"} {
			t.Run(name+", "+string(precision), func(t *testing.T) {
				device := cudatest.GPU(t, cuda.Options{Precision: precision})
				for _, chains := range []int{1, max(2, 8*size/wholeSize)} {
					s := stepTime{Network: name, Batch: max(1, 100*size/wholeSize), Chains: chains, Precision: string(precision)}
					s.measure(t, device, max(1, 64*size/wholeSize))
					t.Logf("%+v", s)
					all = append(all, s)
				}
			})
		}
	}
	save(all)
}

// graphRounds is how often each way is timed in turn; the median counts.
const graphRounds = 7

// measure times runs of so many steps, in pairs.
func (s *stepTime) measure(t *testing.T, device tensor.Device, steps int) {
	t.Helper()
	program := network(t, s.Network, "sgld", 1000, s.Batch)
	planned := &cuda.Planner{Device: device, Chains: s.Chains, Steps: 1}
	if _, err := program.Load(planned, graph.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Calls, s.Path = planned.Nodes, planned.Path
	var sessions [2]*graph.Session
	for i := range sessions {
		cuda.InLine(device, i == 1)
		var err error
		if sessions[i], err = program.Load(device, graph.LoadOptions{Seed: 1, Chains: s.Chains}); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].Close()
	}
	runs, rounds := 1, graphRounds
	if steps < 16 {
		rounds = 1
	}
	run := func(i int) float64 {
		begin := time.Now()
		for range runs {
			if err := sessions[i].Run(steps); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(begin).Seconds() * 1e6 / float64(runs*steps)
	}
	first := max(run(0), run(1)) * float64(steps)
	runs = max(1, int(5e4/first))
	var times [2][]float64
	for range rounds {
		for i := range times {
			times[i] = append(times[i], run(i))
		}
	}
	median := func(times []float64) float64 {
		slices.Sort(times)
		return times[len(times)/2]
	}
	s.Graph, s.Line = median(times[0]), median(times[1])
	for _, p := range program.Parameters() {
		for chain := range s.Chains {
			var values [2][]float32
			for i := range values {
				values[i] = make([]float32, p.Shape.Elements())
				if err := sessions[i].ReadFloats(p.Name, chain, values[i]); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(values[0], values[1]) {
				t.Errorf("%s of chain %d is another in a graph than in a line", p.Name, chain)
			}
		}
	}
}
