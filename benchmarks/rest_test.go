//go:build unix

package main

import (
	"os/exec"
	"testing"
	"time"
)

// TestPeersRest: a peer's threads do nothing while there is no request.
func TestPeersRest(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	const program = `
import threading
import time
ticks = 0
def tick():
    global ticks
    while True:
        time.sleep(0.001)
        ticks += 1
threading.Thread(target=tick, daemon=True).start()
for line in sys.stdin:
    time.sleep(json.loads(line)["steps"] / 1000)
    answer(seconds=ticks)
`
	p, err := startPeer(options{python: python}, program)
	if err != nil {
		t.Fatal(err)
	}
	ticks := func(milliseconds int) float64 {
		n, err := p.run(milliseconds)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	begun := ticks(300)
	if begun < 10 {
		t.Fatalf("%v ticks in 300 milliseconds of work, want many", begun)
	}
	time.Sleep(time.Second)
	if rested := ticks(1) - begun; rested > 100 {
		t.Errorf("%v ticks in a second of rest", rested)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}
