package testenv

import (
	"strings"
	"testing"
	"time"
)

// All tests run if they are requested, until the time that limits them, and on a GPU.
func TestWhyNotAll(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "POLLEN_TEST_ALL=1 runs more"},
		{map[string]string{until: "2000"}, "POLLEN_TEST_ALL=1 runs more"},
		{map[string]string{variable: "1"}, ""},
		{map[string]string{variable: "1", until: "1000"}, ""},
		{map[string]string{variable: "1", until: "999"}, "POLLEN_TEST_UNTIL is over"},
		{map[string]string{"POLLEN_TEST_DEVICE": "cuda", until: "999"}, ""},
	} {
		got := whyNotAll(func(name string) string { return test.env[name] }, now)
		if (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%v: %q, want %q", test.env, got, test.want)
		}
	}
}
