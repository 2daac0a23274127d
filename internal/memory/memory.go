package memory

import (
	"fmt"
	"math"
	"runtime/debug"
	"strings"

	"github.com/pkg/errors"
)

// Limit is how much more memory the process can take, and what limits it.
type Limit struct {
	Bytes  int64  // or Unknown
	Reason string // such as "memory.max of /sys/fs/cgroup/job"
}

// Unknown is the limit of a system that reports none.
const Unknown = math.MaxInt64

// unlimited is the limit of a system that reports none.
var unlimited = Limit{Unknown, "unknown"}

// Known reports whether the system reports a limit.
func (l Limit) Known() bool { return l.Bytes < Unknown }

// tighter returns the smaller of two limits.
func (l Limit) tighter(other Limit) Limit {
	if other.Bytes < l.Bytes {
		return other
	}
	return l
}

// Available returns the tightest of the limits: the machine's available memory, the process's
// cgroups (versions 1 and 2), and its limits on address space and data (ulimit -v and -d). Memory
// that Go holds for reuse counts as available if debug.FreeOSMemory returns it first.
func Available() Limit { return system() }

// Negligible is the size below which Check does nothing: Go's heap may have unused memory of this
// size, and the limits are not known more precisely.
const Negligible = 8 << 20

// Check returns an Error if work needs more bytes than the process can take. advice is called only
// then, and returns settings that need less, such as "batch 64".
func Check(task string, need int64, advice func(available int64) []string) error {
	if need < Negligible {
		return nil
	}
	limit := Available()
	if need <= limit.Bytes {
		return nil
	}
	debug.FreeOSMemory()
	if limit = Available(); need <= limit.Bytes {
		return nil
	}
	e := &Error{Task: task, Need: need, Limit: limit}
	if advice != nil {
		e.Advice = advice(limit.Bytes)
	}
	return errors.WithStack(e)
}

// Error is the error of work that needs more memory than the process can take. It is found before
// anything is allocated.
type Error struct {
	Task   string // such as "pollen: fit"
	Need   int64  // bytes
	Limit  Limit  // what is available
	Advice []string
}

// Error reports the needed and the available memory, and settings that need less.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s needs %s of memory, %s are available (%s)", e.Task, Size(e.Need), Size(e.Limit.Bytes), e.Limit.Reason)
	if len(e.Advice) > 0 {
		text += "; less is needed with " + strings.Join(e.Advice, ", or ")
	}
	return text
}

// Size returns bytes as text, such as "3.1 GiB" or "512 KiB".
func Size(bytes int64) string {
	value, unit := float64(max(bytes, 0)), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	if value >= 100 || unit == "B" {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}
