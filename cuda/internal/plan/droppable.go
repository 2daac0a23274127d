package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// dropUnread drops the results that no call of a step reads. Nothing else can read them: scratch
// memory has no meaning after a step, and launches on their own write all their results.
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
