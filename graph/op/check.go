package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// checkRanks checks the number of inputs and of their axes; a rank of -1 is any.
func checkRanks(inputs []tensor.Shape, ranks ...int) error {
	if len(inputs) != len(ranks) {
		return errors.Errorf("got %d inputs, wants %d", len(inputs), len(ranks))
	}
	for i, rank := range ranks {
		if rank >= 0 && len(inputs[i]) != rank {
			return errors.Errorf("input %d has shape %v, wants %d axes", i, inputs[i], rank)
		}
	}
	return nil
}

// checkEqual checks that two inputs have the same shape.
func checkEqual(a, b tensor.Shape) error {
	if !a.Equal(b) {
		return errors.Errorf("got shapes %v and %v, wants them equal", a, b)
	}
	return nil
}

// checkStream checks that a stream of random numbers can be one of Builder.Stream's.
func checkStream(stream uint16) error {
	if stream == 0 || stream == random.OrderStream {
		return errors.Errorf("stream is %d, wants one of Builder.Stream", stream)
	}
	return nil
}
