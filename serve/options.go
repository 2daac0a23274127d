package serve

import (
	"fmt"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
)

// Options bound what a Server does. The zero value is right for most.
type Options struct {
	Batch int           // images that the network sees at once, see pollen.Run.Predictor; 0 is 8
	Wait  time.Duration // that images wait for others to join them; 0 is 2 ms, negative is none
	Queue int           // images that wait, at most; 0 is 512

	MaxImages int // of a request; 0 is 64
	MaxBody   int // bytes of a request; 0 is 16 MiB
	Memory    int // bytes of the bodies and images of all requests at one time; 0 is 256 MiB

	// MaxPixels is how many pixels a picture may have, and all that are decoded at one time, which
	// takes up to some 30 bytes for each; 0 is 25 million, datasets.MaxPixels is the most.
	MaxPixels int

	// Timeout is how long a request may take to arrive, and again to be answered; 0 is 20 s. Serve
	// has the connection closed then.
	Timeout time.Duration

	// Report, if not nil, receives errors that are no client's fault: a prediction that fails, a
	// panic, the HTTP server's own complaints. It is called from several goroutines.
	Report func(error)
}

// OptionError is the error of an option that makes no sense.
type OptionError struct {
	Option  string // the field of Options
	Problem string // what was got, and what is wanted
}

// Error names the option.
func (e OptionError) Error() string { return "serve: options: " + e.Option + ": " + e.Problem }

func invalid(option, format string, values ...any) error {
	return errors.WithStack(OptionError{option, fmt.Sprintf(format, values...)})
}

// resolve fills in defaults and refuses what makes no sense.
func (o Options) resolve() (Options, error) {
	for _, field := range []struct {
		name           string
		value          *int
		standard, most int
	}{
		{"Batch", &o.Batch, 8, 1 << 16},
		{"Queue", &o.Queue, 512, 1 << 20},
		{"MaxImages", &o.MaxImages, 64, 1 << 16},
		{"MaxBody", &o.MaxBody, 16 << 20, 1 << 30},
		{"MaxPixels", &o.MaxPixels, 25_000_000, datasets.MaxPixels},
		{"Memory", &o.Memory, 256 << 20, 1 << 40},
	} {
		if *field.value == 0 {
			*field.value = field.standard
		}
		if *field.value < 1 || *field.value > field.most {
			return o, invalid(field.name, "%d, wants 1 to %d", *field.value, field.most)
		}
	}
	if o.Wait == 0 {
		o.Wait = 2 * time.Millisecond
	}
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	switch {
	case o.Timeout < 0:
		return o, invalid("Timeout", "%v, wants more than 0", o.Timeout)
	case o.MaxImages > o.Queue:
		return o, invalid("MaxImages", "%d, wants at most the %d images of Queue", o.MaxImages, o.Queue)
	case o.MaxBody > o.Memory:
		return o, invalid("MaxBody", "%d, wants at most the %d bytes of all requests together", o.MaxBody, o.Memory)
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return o, nil
}
