package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// spare is a result of a call that another kernel leaves out, such as maxima whose readers all read
// the packed copy that the same kernel makes.
type droppable struct {
	result  *tensor.Buffer
	without Call
}

// dropUnread leaves out the spare results that none of a step's calls reads. Scratch memory has no
// meaning after a step, so nobody else reads them. Launches by themselves write all their results.
func dropUnread(calls []Call) {
	for i, c := range calls {
		if c.droppable == nil || c.droppable.result.Arena != tensor.Scratch || slices.ContainsFunc(calls, c.droppable.isReadBy) {
			continue
		}
		without := c.droppable.without
		without.Launch = c.Launch
		calls[i] = without
	}
}

func (s *droppable) isReadBy(c Call) bool {
	return slices.ContainsFunc(c.Arguments, func(a tensor.Argument) bool {
		return a.Buffer != nil && a.Access&tensor.Read != 0 && a.Buffer.Overlaps(s.result)
	})
}
