//go:build unix

package command

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeReloads: on SIGHUP a server reloads the token and the samples and reopens its access
// log, and on SIGTERM it ends.
func TestServeReloads(t *testing.T) {
	p := newProcesses(t)
	p.want(0, "pollen", strings.Fields("fit --method sgld --data notmnist --model mlp-4 --batch 20 --epochs 2 --samples 2 --folder run"))
	p.want(0, "pollen", strings.Fields("fit --method sgld --data notmnist --model mlp-4 --batch 20 --epochs 2 --samples 3 --folder longer"))
	const first, second = "token-0123456789-a", "token-0123456789-b"
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(p.path("token"), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first)
	if err := os.Symlink("run", p.path("current")); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("pollen", "serve", "current", "--address", "127.0.0.1:0", "--token-file", "token", "--access-log", "access.log")
	server.Dir = p.dir
	remarks, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Process.Kill()
	lines := bufio.NewScanner(remarks)
	await := func(pattern string) []string {
		t.Helper()
		for lines.Scan() {
			if found := regexp.MustCompile(pattern).FindStringSubmatch(lines.Text()); found != nil {
				return found
			}
		}
		t.Fatalf("the server has not reported %s", pattern)
		return nil
	}
	address := await(`^serving current at (http://127\.0\.0\.1:\d+);`)[1]
	run := func(token string) (status int, samples float64) {
		t.Helper()
		r, err := http.NewRequest("GET", address+"/run", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		var run struct{ Samples float64 }
		if err := json.Unmarshal(content, &run); err != nil {
			t.Fatalf("%v in %s", err, content)
		}
		return response.StatusCode, run.Samples
	}
	if status, samples := run(first); status != 200 || samples != 2 {
		t.Errorf("at first: %d, %v samples", status, samples)
	}
	signal := func(s os.Signal) {
		t.Helper()
		if err := server.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}

	// A mistake changes nothing.
	write("")
	signal(syscall.SIGHUP)
	await(`^pollen: reload: .*token must have a token, is empty; serving as before$`)
	if status, _ := run(first); status != 200 {
		t.Errorf("after a mistake: %d", status)
	}

	write(second)
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(p.path(from), p.path(to)); err != nil {
			t.Fatal(err)
		}
	}
	rename("access.log", "access.log.1")
	if err := os.Symlink("longer", p.path("next")); err != nil {
		t.Fatal(err)
	}
	rename("next", "current")
	signal(syscall.SIGHUP)
	await(`^pollen: reloaded current version 1: 3 samples$`)
	if status, _ := run(first); status != 401 {
		t.Errorf("with the token before: %d", status)
	}
	if status, samples := run(second); status != 200 || samples != 3 {
		t.Errorf("with the new token: %d, %v samples", status, samples)
	}
	signal(syscall.SIGTERM)
	await("^pollen: stopped; pending requests were answered$")
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	for name, statuses := range map[string]string{"access.log.1": "200 200", "access.log": "401 200"} {
		content, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, status := range regexp.MustCompile(`"path":"/run","status":(\d+)`).FindAllStringSubmatch(string(content), -1) {
			got = append(got, status[1])
		}
		if strings.Join(got, " ") != statuses {
			t.Errorf("%s has the statuses %v, want %s", name, got, statuses)
		}
	}
}
