package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"
)

const smallRun = "fit --data notmnist --model mlp-32 --method sghmc --schedule constant:0.002 --batch 10 --epochs 60 --burn-in 10 --samples 100 --chains 2"

// mount mounts a disk of a given size at a new directory; why is set if that is not permitted.
func (h *harness) mount(name, size string) (dir string, unmount func(), why error) {
	dir = filepath.Join(h.work, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		return "", nil, errors.Errorf("a disk cannot be mounted here: %v %s", err, out)
	}
	return dir, func() { _ = exec.Command("umount", dir).Run() }, nil // left behind at worst
}

func remount(dir, options string) error {
	out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput()
	return errors.Wrapf(err, "remount: %s", out)
}

// fullDisk trains where only a part of the run fits, and resumes when there is more room.
func fullDisk(h *harness) error {
	disk, unmount, why := h.mount("small", "12m")
	if why != nil {
		h.report("left out: %v", why)
		return nil
	}
	defer unmount()
	if _, err := h.must(nil, append(strings.Fields(smallRun), "--folder", "roomy")...); err != nil {
		return err
	}
	dir := filepath.Join(disk, "run")
	p, code, err := h.end(nil, append(strings.Fields(smallRun), "--folder", dir)...)
	if err != nil {
		return err
	}
	if code != 5 || !strings.Contains(p.remarks.String(), "the disk is nearly full") {
		h.fail("a full disk: exit code %d, want 5: %s", code, p.remarks.String())
	}
	if p, code, _ := h.end(nil, "verify", dir); code != 0 {
		h.fail("a full disk left damage: %s", p.out.String())
	}
	if _, err := h.must(nil, "eval", "--page", "page", dir); err != nil {
		h.fail("the run on a full disk cannot be scored: %v", err)
	}
	if err := remount(disk, "size=200m"); err != nil {
		return err
	}
	if _, err := h.must(nil, "fit", "--resume", dir); err != nil {
		return err
	}
	return h.same("with room again", filepath.Join(h.work, "roomy"), dir)
}

// same compares two runs.
func (h *harness) same(what, want, got string) error {
	a, err := results(want)
	if err != nil {
		return err
	}
	b, err := results(got)
	if err == nil {
		if d := difference(a, b); d != "" {
			h.fail("%s: %s", what, d)
		}
	}
	return err
}

// readOnly scores a run on a read-only disk, and tries to resume it.
func readOnly(h *harness) error {
	disk, unmount, why := h.mount("readonly", "64m")
	if why != nil {
		h.report("left out: %v", why)
		return nil
	}
	defer unmount()
	dir := filepath.Join(disk, "run")
	if _, err := h.must(nil, append(strings.Fields(smallRun), "--folder", dir)...); err != nil {
		return err
	}
	if err := remount(disk, "ro"); err != nil {
		return err
	}
	for _, arguments := range [][]string{{"eval", "--page", "page", dir}, {"verify", dir}} {
		if _, err := h.must(nil, arguments...); err != nil {
			h.fail("read only: %v", err)
		}
	}
	for _, arguments := range [][]string{{"fit", "--resume", dir}, append(strings.Fields(smallRun), "--folder", filepath.Join(disk, "new"))} {
		p, code, err := h.end(nil, arguments...)
		if err != nil {
			return err
		}
		if code != 1 || !strings.Contains(p.remarks.String(), "read-only file system") {
			h.fail("read only: train %s: exit code %d: %s", strings.Join(arguments, " "), code, p.remarks.String())
		}
	}
	return nil
}

// writers starts a second process in a directory: while the first runs, while it is stopped, and
// after it was killed.
func writers(h *harness) error {
	long := append(strings.Fields(strings.Replace(smallRun, "--epochs 60", "--epochs 3000", 1)), "--folder", "written")
	first, err := h.start(nil, long...)
	if err != nil {
		return err
	}
	defer func() {
		_ = first.Process.Kill() // it may have ended
		<-first.ended
	}()
	if err := h.wait(filepath.Join(h.work, "written", "manifest.json"), first); err != nil {
		return err
	}
	name := fmt.Sprintf("process %d on ", first.Process.Pid)
	for _, state := range []string{"running", "stopped"} {
		if state == "stopped" {
			if err := pause(first.Process); err != nil {
				return errors.Wrap(err, "writers")
			}
		}
		p, code, err := h.end(nil, "fit", "--resume", "written")
		if err != nil {
			return err
		}
		if code != 4 || !strings.Contains(p.remarks.String(), name) {
			h.fail("a second writer while the first is %s: exit code %d: %s", state, code, p.remarks.String())
		}
		if p, code, _ := h.end(nil, "verify", "written"); code != 0 || !strings.Contains(p.out.String(), name) {
			h.fail("verify while a process is %s: exit code %d: %s", state, code, p.out.String())
		}
	}
	if err := first.Process.Kill(); err != nil {
		return errors.Wrap(err, "writers")
	}
	<-first.ended
	second, err := h.start(nil, "fit", "--resume", "written")
	if err != nil {
		return err
	}
	select {
	case <-second.ended:
		h.fail("after the first was killed: exit code %d: %s", second.ProcessState.ExitCode(), second.remarks.String())
	case <-time.After(time.Second):
		_ = second.Process.Kill() // it may have ended
		<-second.ended
	}
	h.report("a second process was refused while the first ran and while it was stopped, and resumed after it was killed")
	return nil
}

// wait waits until a process has made a file.
func (h *harness) wait(path string, p *process) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return errors.Errorf("it ended: %s", p.remarks.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}
