package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// checkRanks checks the number of inputs and their ranks; -1 is any rank.
func checkRanks(inputs []tensor.Shape, ranks ...int) error {
	if len(inputs) != len(ranks) {
		return errors.Errorf("there must be %d inputs, got %d", len(ranks), len(inputs))
	}
	for i, rank := range ranks {
		if rank >= 0 && len(inputs[i]) != rank {
			return errors.Errorf("input %d must have %d axes, got shape %v", i, rank, inputs[i])
		}
	}
	return nil
}

// checkEqual checks that two inputs have the same shape.
func checkEqual(a, b tensor.Shape) error {
	if !a.Equal(b) {
		return errors.Errorf("shapes must be equal, got %v and %v", a, b)
	}
	return nil
}

// checkStream returns an error if stream is 0, which is a forgotten attribute, or the stream that
// orders epochs, or if it has too few random numbers for count elements with words numbers each.
func checkStream(stream uint16, count, words int) error {
	if stream == 0 || stream == random.OrderStream {
		return errors.Errorf("stream must be one of Builder.Stream, got %d", stream)
	}
	if count > random.MaxElements/words {
		return errors.Errorf("random numbers must be for at most %d elements, got %d", random.MaxElements/words, count)
	}
	return nil
}
