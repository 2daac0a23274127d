package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestContainerfile: Containerfile's image has the user of this command's image, builds the
// program reproducibly, and names its bases by a version that does not change from day to day.
func TestContainerfile(t *testing.T) {
	content, err := os.ReadFile("../../../cmd/pollen/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for _, line := range []string{"USER " + user + "\n", "go build -trimpath -buildvcs=false ", `ENTRYPOINT ["/pollen"]`} {
		if !strings.Contains(text, line) {
			t.Errorf("Containerfile has no %q", line)
		}
	}
	bases := regexp.MustCompile(`(?m)^ARG (\w+)=(\S+)$`).FindAllStringSubmatch(text, -1)
	used := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(text, -1)
	if len(bases) != 2 || len(used) != 2 {
		t.Fatalf("bases %v, used as %v: want two, each an ARG", bases, used)
	}
	for i, base := range bases {
		if used[i][1] != "${"+base[1]+"}" {
			t.Errorf("FROM %s, want ${%s}", used[i][1], base[1])
		}
		if !regexp.MustCompile(`:[\w.-]*\d[\w.-]*$|:nonroot$|@sha256:[0-9a-f]{64}$`).MatchString(base[2]) {
			t.Errorf("%s has neither version nor digest: %s", base[1], base[2])
		}
	}
	toolchain := regexp.MustCompile(`golang:(\d+\.\d+\.\d+)-`).FindStringSubmatch(text)
	ci, err := os.ReadFile("../../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if toolchain == nil || !strings.Contains(string(ci), "GOTOOLCHAIN=go"+toolchain[1]+" ") {
		t.Errorf(".ci/run looks for vulnerabilities in another version of Go than the image's, %v", toolchain)
	}
}
