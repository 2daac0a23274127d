package optest

import (
	"fmt"
	"os"

	"github.com/pkg/errors"
)

// ShardVariable is the name of the environment variable that divides cases among processes: with
// "3/16", Run and RunCases run the cases whose index is 3 modulo 16.
const ShardVariable = "POLLEN_TEST_SHARD"

// Shard returns the index and the number of shards from ShardVariable, by default 0 of 1.
func Shard() (index, count int, err error) {
	text := os.Getenv(ShardVariable)
	if text == "" {
		return 0, 1, nil
	}
	if n, err := fmt.Sscanf(text+"\n", "%d/%d\n", &index, &count); n != 2 || err != nil || index < 0 || index >= count {
		return 0, 0, errors.Errorf("optest: %s must be an index below a number of shards, such as 3/16, got %q", ShardVariable, text)
	}
	return index, count, nil
}
