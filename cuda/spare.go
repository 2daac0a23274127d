package cuda

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// spare is a result of a call that another kernel leaves out, such as maxima whose readers all read
// the packed copy that the same kernel makes.
type spare struct {
	result  *tensor.Buffer
	without call
}

// leaveOut leaves out the spare results that none of a step's calls reads. Scratch memory has no
// meaning after a step, so nobody else reads them. Launches by themselves write all their results.
func leaveOut(calls []call) {
	for i, c := range calls {
		if c.spare == nil || c.spare.result.Arena != tensor.Scratch || slices.ContainsFunc(calls, c.spare.isReadBy) {
			continue
		}
		without := c.spare.without
		without.launch = c.launch
		calls[i] = without
	}
}

func (s *spare) isReadBy(c call) bool {
	return slices.ContainsFunc(c.arguments, func(a tensor.Argument) bool {
		return a.Buffer != nil && a.Access&tensor.Read != 0 && a.Buffer.Overlaps(s.result)
	})
}
