package cuda_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestGraphsAreShort: on an H200, the longest path of a step's graph has about half of its calls or
// fewer, and that costs little memory.
func TestGraphsAreShort(t *testing.T) {
	needs(t, cuda.WindowsVariable)
	device := cudatest.GPU(t, cuda.Options{})
	if cuda.Capability(device) < 80 {
		t.Skipf("%s has other tiles", device.Name())
	}
	for _, c := range []struct {
		network     string
		chains      int
		nodes, path int // at most
		scratch     int // at most, in kB
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
			t.Errorf("want for each step at most %d nodes, %d after one another, and an edge or two for each node", c.nodes, c.path)
		}
		if p.Scratch > 1000*c.scratch {
			t.Errorf("scratch memory: want at most %d kB", c.scratch)
		}
	}
}

// stepTime has the times of a step as part of a CUDA graph. Calls follow only the calls that they
// depend on, or each follows the one before it ("in line"), with and without programmatic dependent
// launch.
type stepTime struct {
	Network   string  `json:"network"`
	Batch     int     `json:"batch"`
	Chains    int     `json:"chains"`
	Precision string  `json:"precision"`
	Calls     int     `json:"calls"`
	Path      int     `json:"calls that follow one another"`
	Graph     float64 `json:"microseconds"`
	Line      float64 `json:"microseconds in line"`
	Late      float64 `json:"microseconds without early launches"`
	LateLine  float64 `json:"microseconds in line without early launches"`
}

// TestMeasureGraphs times steps in these four ways, if POLLEN_GRAPHS names the file for the
// results, which is written after each step, and compares the resulting chains, to the bit. A
// POLLEN_CALIBRATION_SIZE below wholeSize makes batches and the number of steps smaller in
// proportion. POLLEN_CALIBRATION_ONLY selects by precision, network and "1 chain" or "64 chains".
func TestMeasureGraphs(t *testing.T) {
	size, save := measurement(t, "POLLEN_GRAPHS", "steps as CUDA graphs")
	precisions, networks := []cuda.Precision{cuda.BF16, cuda.TF32, cuda.FP32}, []string{"mnist-64-64-256", "mlp-400-400", "lenet-small"}
	if size < wholeSize {
		precisions, networks = precisions[:1], networks[1:]
	}
	var all []stepTime
	for _, precision := range precisions {
		for _, name := range networks {
			t.Run(name+", "+string(precision), func(t *testing.T) {
				device := cudatest.GPU(t, cuda.Options{Precision: precision})
				for _, chains := range []int{1, max(2, 64*size/wholeSize)} {
					count := fmt.Sprintf("%d chains", chains)
					if chains == 1 {
						count = "1 chain"
					}
					if !selected(string(precision), name, count) {
						continue
					}
					s := stepTime{Network: name, Batch: max(1, 100*size/wholeSize), Chains: chains, Precision: string(precision)}
					s.measure(t, device, max(1, 64*size/wholeSize))
					t.Logf("%+v", s)
					all = append(all, s)
					save(all)
				}
			})
		}
	}
	save(all)
}

// graphRounds is the number of times that each way is timed in turn; the median counts.
const graphRounds = 7

// measure times runs of steps in each way, alternating.
func (s *stepTime) measure(t *testing.T, device tensor.Device, steps int) {
	t.Helper()
	program := network(t, s.Network, "sgld", 1000, s.Batch)
	planned := &cuda.Planner{Device: device, Chains: s.Chains, Steps: 1}
	if _, err := program.Load(planned, graph.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Calls, s.Path = planned.Nodes, planned.Path
	runs, rounds := 1, graphRounds
	if steps < 16 {
		rounds = 1
	}
	var sessions []*graph.Session
	run := func(session *graph.Session) float64 {
		begin := time.Now()
		for range runs {
			if err := session.Run(steps); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(begin).Seconds() * 1e6 / float64(runs*steps)
	}
	early := cuda.SetPDL(device, true)
	defer cuda.SetPDL(device, early)
	defer cuda.SetSequential(device, false)
	ways := []*float64{&s.Graph, &s.Line, &s.Late, &s.LateLine}
	slowest := 0.0
	for i := range ways {
		cuda.SetSequential(device, i%2 == 1)
		cuda.SetPDL(device, early && i < 2)
		session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: s.Chains})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		writeNormalImages(t, session)
		run(session) // makes the CUDA graphs
		slowest = max(slowest, run(session)*float64(steps))
		sessions = append(sessions, session)
	}
	runs = max(1, int(5e4/slowest))
	times := make([][]float64, len(ways))
	for range rounds {
		for i, session := range sessions {
			times[i] = append(times[i], run(session))
		}
	}
	for i, way := range ways {
		slices.Sort(times[i])
		*way = times[i][len(times[i])/2]
	}
	compareChains(t, program, sessions)
}

// writeNormalImages writes images with normally distributed pixels, the same number for each class.
func writeNormalImages(t *testing.T, session *graph.Session) {
	t.Helper()
	const images = 1000
	pixels, labels := make([]byte, images*28*28), make([]int32, images)
	for i, z := range normals(len(pixels)) {
		pixels[i] = byte(min(255, max(0, 128+40*z)))
	}
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	err := graph.Write(session, "images", 0, 0, pixels)
	if err == nil {
		err = graph.Write(session, "labels", 0, 0, labels)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compareChains compares each chain of the sessions, to the bit.
func compareChains(t *testing.T, program *graph.Program, sessions []*graph.Session) {
	t.Helper()
	for _, p := range program.Parameters() {
		for chain := range sessions[0].Chains() {
			var first []float32
			for i, session := range sessions {
				values := make([]float32, p.Shape.Elements())
				if err := session.ReadFloats(p.Name, chain, values); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = values
				} else if !slices.Equal(values, first) {
					t.Errorf("%s of chain %d differs between the first way and way %d", p.Name, chain, i)
				}
			}
		}
	}
}
