package kernels

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// apart has the kernels that access four neighbours one by one, with the reasons. Most do because
// the neighbours need not begin at a multiple of 16 bytes.
var apart = map[string]string{
	"max_pool_fwd": "windows begin anywhere", "max_pool_bwd": "windows begin anywhere", "max_pool_relu_fwd": "windows begin anywhere",
	"max_pool_relu_bwd": "windows begin anywhere", "average_pool_fwd": "windows begin anywhere",
	"accuracy_fwd": "a row of classes", "kfac_whiten": "a row of a triangle",
	"depthwise_3x3_stride1_fwd": "a filter begins anywhere", "depthwise_3x3_stride1_bwd_input": "a filter begins anywhere",
	"depthwise_3x3_stride2_fwd": "a filter begins anywhere", "depthwise_3x3_stride2_bwd_input": "a filter begins anywhere",
	"depthwise_5x5_stride1_fwd": "a filter begins anywhere", "depthwise_5x5_stride1_bwd_input": "a filter begins anywhere",
	"depthwise_5x5_stride2_fwd": "a filter begins anywhere", "depthwise_5x5_stride2_bwd_input": "a filter begins anywhere",
	"sgnht_update_euler_element": "a rule sees one thermostat", "sgnht_update_badodab_element": "a rule sees one thermostat",
}

// byFours are kernels whose loops process whole vectors of four, with the number of vectors that
// they read and write.
var byFours = []struct {
	name        string
	read, wrote int
}{
	{"relu_fwd", 1, 1}, {"relu_bwd", 2, 1}, {"relu_bwd_sum", 3, 1}, {"tanh_fwd", 1, 1}, {"tanh_bwd", 2, 1}, {"scale_fwd", 1, 1},
	{"add_fwd", 2, 1}, {"add_relu_fwd", 2, 1}, {"power_fwd", 2, 1},
	{"fan_in_fwd", 2, 1}, {"squared_error_bwd", 2, 1}, {"bernoulli_logits_bwd", 2, 1}, {"threshold_fwd", 1, 1}, {"threshold_bwd", 2, 1}, {"bias_fwd", 1, 1},
	{"dropout_fwd", 1, 1}, {"noise_normal_fwd", 0, 1}, {"sgd_update", 2, 1}, {"momentum_update", 3, 2}, {"adam_update", 4, 3}, {"sgld_update", 2, 1},
	{"psgld_update", 3, 2}, {"fsgld_update", 3, 2}, {"psgld_gamma_update", 5, 3}, {"accumulate_update", 2, 1}, {"sghmc_update", 3, 2}, {"baoab_update", 3, 2},
	{"obabo_update", 3, 2}, {"ubu_update", 3, 2}, {"kinetic_fwd", 1, 0},
	{"sgnht_update_euler", 3, 2}, {"sgnht_update_badodab", 3, 1}, {"sgnht_drift", 2, 2}, {"move_update", 3, 1},
}

// TestFours: the kernels in byFours and all updates access 16 bytes at a time, and no other kernel
// accesses four neighbours of 4 bytes one by one.
func TestFours(t *testing.T) {
	bodies := map[string]string{}
	for _, f := range mustFiles(t) {
		for _, part := range strings.Split(f.Text, "\n.visible .entry ")[1:] {
			name, body, _ := strings.Cut(part, "(")
			if stem, single := strings.CutSuffix(strings.TrimSpace(name), "_f32"); single {
				bodies[stem] = body
			}
		}
	}
	for name, body := range bodies {
		found := sideBySide(body)
		if reason := apart[name]; (len(found) > 0) != (reason != "") {
			t.Errorf("%s: four neighbours at %v are read or written one by one, expected where there is a reason: %q", name, found, reason)
		}
	}
	for name := range bodies {
		if !strings.HasSuffix(name, "_update") {
			continue
		}
		if len(fourRead.FindAllString(bodies[name], -1)) < 2 || len(fourWritten.FindAllString(bodies[name], -1)) < 1 {
			t.Errorf("%s does not read the parameter and its gradient by fours, or does not write the parameter so", name)
		}
	}
	for _, want := range byFours {
		reads, writes := len(fourRead.FindAllString(bodies[want.name], -1)), len(fourWritten.FindAllString(bodies[want.name], -1))
		if reads < want.read || writes < want.wrote {
			t.Errorf("%s reads %d fours and writes %d, want %d and %d", want.name, reads, writes, want.read, want.wrote)
		}
	}
}

var (
	fourRead    = regexp.MustCompile(`ld\.global(?:\.nc)?\.v4\.[bfu]32`)
	fourWritten = regexp.MustCompile(`st\.global\.v4\.[bfu]32`)
	accessLine  = regexp.MustCompile(`(?m)^(?:@!?%p\d+ )?(ld|st)\.global(?:\.nc)?\.[bfu]32 [^\n]*\[(%rd\d+)(?:\+(-?\d+))?\]`)
)

// sideBySide returns the addresses of four neighbours of 4 bytes that are accessed one by one.
func sideBySide(body string) (places []string) {
	offsets := map[string][]int{}
	for _, m := range accessLine.FindAllStringSubmatch(body, -1) {
		at, _ := strconv.Atoi(m[3])
		offsets[m[1]+" "+m[2]] = append(offsets[m[1]+" "+m[2]], at)
	}
	for place, all := range offsets {
		for _, at := range all {
			if slices.Contains(all, at+4) && slices.Contains(all, at+8) && slices.Contains(all, at+12) {
				places = append(places, fmt.Sprintf("%s+%d", place, at))
			}
		}
	}
	return places
}
