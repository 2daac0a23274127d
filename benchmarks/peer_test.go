package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// The works whose noise is compared: after the steps of SGLD the parameters have moved by
// 2 rate steps/N in the mean square, and little more, since the gradients move them by rate steps
// times less than 1.
const (
	noiseNetwork    = "mlp-10"
	noiseParameters = 785*10 + 11*10
	noiseBatch      = 4
	noiseSteps      = 20
)

func checkNoise(t *testing.T, displacement float64, chains int) {
	t.Helper()
	want := 2 * rate * noiseSteps / float64(training{batch: noiseBatch}.examples())
	// The standard deviation of a chi-square, and a percent for the gradients.
	if bound := 4.5*math.Sqrt(2/float64(chains*noiseParameters)) + 0.01; !(math.Abs(displacement/want-1) < bound) {
		t.Errorf("the mean square displacement is %.4g, want %.4g within a fraction of %.3f", displacement, want, bound)
	}
}

// TestNoiseIsOurs: the peers' SGLD has the same noise as Pollen's. POLLEN_PEERS is a Python that
// has them; without it they are skipped.
func TestNoiseIsOurs(t *testing.T) {
	work := training{noiseNetwork, noiseBatch, "sgld"}
	t.Run("pollen", func(t *testing.T) {
		ours, err := loadPollen(work, tensor.NewHost(1), 1)
		if err != nil {
			t.Fatal(err)
		}
		defer ours.close()
		session, sum, n := ours.(*pollen).session, 0.0, 0
		read := func() (all []float32) {
			for _, p := range session.Program().Parameters() {
				values := make([]float32, p.Shape.Elements())
				if err := graph.Read(session, p.Name, 0, 0, values); err != nil {
					t.Fatal(err)
				}
				all = append(all, values...)
			}
			return all
		}
		before := read()
		if err := session.Run(noiseSteps); err != nil {
			t.Fatal(err)
		}
		for i, v := range read() {
			sum += float64(v-before[i]) * float64(v-before[i])
			n++
		}
		if n != noiseParameters {
			t.Errorf("%d parameters, want %d", n, noiseParameters)
		}
		checkNoise(t, sum/float64(n), 1)
	})
	t.Run("peers", func(t *testing.T) {
		python := os.Getenv("POLLEN_PEERS")
		if python == "" {
			t.Skip("POLLEN_PEERS is not set")
		}
		for _, s := range gpuServices() {
			for _, chains := range []int{1, 3} {
				t.Run(fmt.Sprintf("%s, %d chains", s.name, chains), func(t *testing.T) { checkPeersNoise(t, python, s, work, chains) })
			}
		}
	})
}

func checkPeersNoise(t *testing.T, python string, s *service, work training, chains int) {
	p, err := startPeer(options{python: python}, s.program)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	_, err = p.ask(peerRequest{
		Work: "train", Device: "cpu", Mode: s.mode, Network: work.network, Batch: work.batch, Sampler: work.sampler, Chains: chains, Precision: "fp32",
		Rate: rate, Prior: priorStd,
	})
	if _, missing := errors.Cause(err).(absent); missing {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.run(noiseSteps); err != nil {
		t.Fatal(err)
	}
	a, err := p.ask(peerRequest{Displacement: true})
	if err != nil {
		t.Fatal(err)
	}
	checkNoise(t, a.Displacement, chains)
}

// TestPeersHaveOurParameters: a network has the same number of parameters in the peers as here.
func TestPeersHaveOurParameters(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	const program = `
import math
for line in sys.stdin:
    shapes = [shape for shape, _, _ in parameters_of(plan(json.loads(line)["network"]))]
    answer(seconds=sum(map(math.prod, shapes)), displacement=len(shapes))
`
	p, err := startPeer(options{python: python}, program)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, network := range stepNetworks {
		ours, err := training{network, 2, "sgd"}.compile()
		if err != nil {
			t.Fatal(err)
		}
		parameters := 0
		for _, parameter := range ours.Parameters() {
			parameters += parameter.Shape.Elements()
		}
		a, err := p.ask(peerRequest{Network: network})
		if err != nil {
			t.Fatal(err)
		}
		if int(a.Seconds) != parameters || int(a.Displacement) != len(ours.Parameters()) {
			t.Errorf("%s: %v parameters in %v tensors at the peers, want %d in %d", network, a.Seconds, a.Displacement, parameters, len(ours.Parameters()))
		}
	}
}
