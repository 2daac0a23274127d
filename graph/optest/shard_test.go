package optest

import "testing"

func TestShard(t *testing.T) {
	for text, want := range map[string][2]int{"": {0, 1}, "3/16": {3, 16}} {
		t.Setenv(ShardVariable, text)
		if index, count, err := Shard(); index != want[0] || count != want[1] || err != nil {
			t.Errorf("%q: got %d of %d, %v", text, index, count, err)
		}
	}
	for _, text := range []string{"3", "16/16", "-1/4", "0/0", "1/2x", "a/b"} {
		t.Setenv(ShardVariable, text)
		if _, _, err := Shard(); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
