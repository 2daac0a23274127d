package devices_test

import (
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/devices"
)

func TestOpen(t *testing.T) {
	device, note, err := devices.Open(devices.Options{Name: "cpu", Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if !strings.HasPrefix(note, "cpu (2 threads), ") || !strings.HasSuffix(note, " kernels") {
		t.Errorf("the note is %q", note)
	}
}

func TestInvalidOptions(t *testing.T) {
	for want, o := range map[string]devices.Options{
		`no device "gpu"; there are auto, cpu, cuda, cuda:1, cuda:0,1`:                {Name: "gpu"},
		`device must be cuda, cuda:1 or cuda:0,1, with each GPU once, got "cuda:0,0"`: {Name: "cuda:0,0"},
		"threads must be at least 1, or 0 for all, got -1":                            {Threads: -1},
		"threads applies to cpu, not to cuda:1":                                       {Name: "cuda:1", Threads: 2},
		`no precision "fp8"; there are fp32, tf32, bf16`:                              {Precision: "fp8"},
		"precision applies to cuda, not to cpu":                                       {Name: "cpu", Precision: "bf16"},
	} {
		_, _, err := devices.Open(o)
		if !errors.As(err, new(*bayes.InvalidError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}
