package emulator

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// subject is an entry of the committed PTX with some of its launches. The result of a launch is its
// first buffer.
type subject struct {
	file, entry string
	record      func(r *Recording, symbol string)
	want        [][]float64 // results of each launch
	behind      []int       // bytes of each launch's other buffers
	within      float64     // tolerance of a number
	most        int         // maximum mutants per kind; 0 means the constant most
}

// floats returns the contents of a buffer.
func floats(values []float64) []byte {
	var all []byte
	for _, v := range values {
		all = binary.LittleEndian.AppendUint32(all, math.Float32bits(float32(v)))
	}
	return all
}

// someNumbers returns numbers from -1 to 1 that use all bits of the fraction.
func someNumbers(n int, seed float64) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = float64(float32(math.Sin(seed + float64(i*i%9973))))
	}
	return all
}

// product returns a subject that multiplies matrices larger than a tile of height rows, with edges,
// a bias and slices. The second launch copies four neighbours along the rows at once. The third,
// which has a mask, copies four along the depth. Each of the groups of threads computes one slice.
func product(entry string, within float64, height, groups int) subject {
	s := subject{file: "matmul_sm80.ptx", entry: entry, within: within, most: 10 - 2*groups}
	const ofColumn, ofRow, atLeast0, mask, atMost6 = 1, 2, 4, 64, 128 // the epilogues of product.cuh
	rows := []struct{ m, n, k, transposeA, transposeB, slices, each, epilogue int }{
		{height + 13, 70, 107*groups - 20*(groups-1), 0, 0, 1 + groups, 80, ofColumn},
		{height + 12, 72, 80 * (2*groups - 1), 1, 0, 2*groups - 1, 80, ofColumn},
		{height + 12, 72, 108*groups - 20*(groups-1), 0, 1, 1 + groups, 80, mask},
		{height + 13, 70, 107*groups - 20*(groups-1), 0, 0, 1 + groups, 80, ofRow | atLeast0 | atMost6},
		{height + 12, 72, 80 * (2*groups - 1), 1, 0, 2*groups - 1, 80, ofRow | atLeast0 | atMost6},
	}
	biases := func(i int) []float64 {
		n := map[int]int{ofColumn: rows[i].n, mask: rows[i].m * rows[i].n, ofRow: rows[i].m}[rows[i].epilogue&(ofColumn|mask|ofRow)]
		return someNumbers(n, 3)
	}
	for which, r := range rows {
		a, b, bias := someNumbers(r.m*r.k, 1), someNumbers(r.k*r.n, 2), biases(which)
		across, down := r.k, 1
		if r.transposeA == 1 {
			across, down = 1, r.m
		}
		acrossB, downB := 1, r.n
		if r.transposeB == 1 {
			acrossB, downB = r.k, 1
		}
		var want []float64
		for i := range r.m {
			for j := range r.n {
				sum := 0.0
				for d := range r.k {
					sum += a[i*across+d*down] * b[d*downB+j*acrossB]
				}
				switch {
				case r.epilogue == ofColumn:
					sum += bias[j]
				case r.epilogue != mask:
					sum = min(6, max(0, sum+bias[i]))
				case bias[i*r.n+j] <= 0:
					sum = 0
				}
				want = append(want, sum)
			}
		}
		s.want, s.behind = append(s.want, want), append(s.behind, 4*(len(a)+len(b)+len(bias)))
	}
	s.record = func(recording *Recording, symbol string) {
		bytesShared := groups * 4 * 16 * (height + 64) * 4 // stages of tiles of 64 columns
		if groups > 1 {
			bytesShared += 4 * height * 64 // the sums over the turns
		}
		for i, r := range rows {
			arguments := integers(4)
			for _, v := range []int{r.m, r.n, r.k, r.transposeA, r.transposeB, r.epilogue, r.slices, r.each} {
				arguments = append(arguments, Argument{Value: uint64(v)})
			}
			buffers := []Buffer{{Bytes: 4 * len(s.want[i])}}
			for _, values := range [][]float64{someNumbers(r.m*r.k, 1), someNumbers(r.k*r.n, 2), biases(i)} {
				buffers = append(buffers, Buffer{Bytes: 4 * len(values), Contents: floats(values)})
			}
			recording.Add(1, buffers, []Call{{Symbol: symbol, Blocks: [2]int{4, 1}, Threads: 2 * height * groups, Shared: bytesShared, Arguments: arguments}})
		}
	}
	return s
}

// accuracy computes the fraction of rows whose largest number is at the label: one row per thread,
// summed over the block.
func accuracy() subject {
	const rows, classes = 100, 13
	s := subject{file: "crossentropy.ptx", entry: "accuracy_fwd_f32", within: 1e-7, behind: []int{4 * (rows*classes + rows)}}
	x := someNumbers(rows*classes, 4)
	var labels []byte
	right := 0.0
	for r := range rows {
		best := 0
		for c := range classes {
			if x[r*classes+c] > x[r*classes+best] {
				best = c
			}
		}
		label := r % classes
		if r%3 > 0 {
			label = best
		}
		if label == best {
			right++
		}
		labels = binary.LittleEndian.AppendUint32(labels, uint32(label))
	}
	s.want = [][]float64{{right / rows}}
	s.record = func(recording *Recording, symbol string) {
		recording.Add(1, []Buffer{{Bytes: 4}, {Bytes: 4 * len(x), Contents: floats(x)}, {Bytes: len(labels), Contents: labels}}, []Call{{
			Symbol: symbol, Blocks: [2]int{1, 1}, Threads: 128, Arguments: integers(3, rows, classes),
		}})
	}
	return s
}

// exponentials computes exp of numbers that do not fill the last thread's vector of four.
func exponentials() subject {
	x := someNumbers(1027, 5)
	s := subject{file: "pointwise.ptx", entry: "exp_fwd_f32", within: 1e-6, behind: []int{4 * len(x)}, want: [][]float64{nil}}
	for _, v := range x {
		s.want[0] = append(s.want[0], math.Exp(v))
	}
	s.record = func(recording *Recording, symbol string) {
		recording.Add(1, []Buffer{{Bytes: 4 * len(x)}, {Bytes: 4 * len(x), Contents: floats(x)}}, []Call{{
			Symbol: symbol, Blocks: [2]int{1, 1}, Threads: 256, Arguments: integers(2, len(x)),
		}})
	}
	return s
}

// run runs the launches and returns their results.
func (s *subject) run(t *testing.T, program Program, symbol string, seconds int) (results [][]byte, err error) {
	t.Helper()
	recording := &Recording{Early: true}
	s.record(recording, symbol)
	memory, err := program.Run(t, recording, seconds)
	if err != nil {
		return nil, err
	}
	for i, want := range s.want {
		results = append(results, memory[:4*len(want)])
		memory = memory[4*len(want)+s.behind[i]:]
	}
	return results, nil
}

// check compares results with the expected ones.
func (s *subject) check(results [][]byte) error {
	for launch, values := range s.want {
		for i, want := range values {
			got := math.Float32frombits(binary.LittleEndian.Uint32(results[launch][4*i:]))
			if !(math.Abs(float64(got)-want) <= s.within) {
				return errors.Errorf("launch %d: element %d is %v, want %v", launch, i, got, want)
			}
		}
	}
	return nil
}

// committed returns the text of a committed file of PTX.
func committed(t *testing.T, name string) []byte {
	t.Helper()
	files, err := kernels.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name == name {
			return []byte(f.Text)
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// text returns the file's head, and the entry, for programmatic dependent launch.
func (s *subject) text(t *testing.T) (head, entry string) {
	t.Helper()
	content := committed(t, s.file)
	head, _, _ = strings.Cut(string(content), ".visible .entry ")
	_, after, found := strings.Cut(string(content), ".visible .entry "+s.entry+"(\n")
	body, _, ended := strings.Cut(after, "\n}\n")
	if !found || !ended {
		t.Fatalf("%s has no entry %s", s.file, s.entry)
	}
	return kernels.Dependent(head), kernels.Dependent(".visible .entry " + s.entry + "(\n" + body + "\n}\n")
}

// mistakes are ways to make a line wrong: the group of the pattern is replaced. Of each kind, at
// most most lines of a kernel are tried, and the given share of them must be detected. Not all can
// be: a branch may lead to the same result both ways, a barrier may only matter before or after a
// launch's only round, and these launches may not execute an access.
var mistakes = []struct {
	name    string
	pattern *regexp.Regexp
	with    func(part string) string
	share   float64
}{
	{"registers of a swapped", regexp.MustCompile(`mma\S+ \{[^}]*\}, \{(%\w+, %\w+)`), swapped, 1},
	{"registers of b swapped", regexp.MustCompile(`mma\S+ \{[^}]*\}, \{[^}]*\}, \{(%\w+, %\w+)`), swapped, 1},
	{"sums swapped", regexp.MustCompile(`mma\S+ \{(%\w+, %\w+)`), swapped, 1},
	{"a barrier dropped", regexp.MustCompile(`^(bar\.sync 0;)`), always(""), 0.5},
	{"copies waited for too late", regexp.MustCompile(`^cp\.async\.wait_group (\d)`), later, 1},
	{"matrices' registers swapped", regexp.MustCompile(`ldmatrix\S+ \{(%\w+, %\w+)`), swapped, 1},
	{"a matrix transposed", regexp.MustCompile(`ldmatrix\.sync\.aligned\.m8n8\.x4(\.shared)`), always(".trans.shared"), 1},
	{"a matrix not transposed", regexp.MustCompile(`ldmatrix\.sync\.aligned\.m8n8\.x4(\.trans)`), always(""), 1},
	{"rows 16 bytes further on", regexp.MustCompile(`ldmatrix[^\[]*\[%\w+(\+\d+|)\]`), chunkFurther, 0.9},
	{"a branch's predicate negated", regexp.MustCompile(`^@(%p)`), always("!%p"), 0.7},
	{"a negated predicate not", regexp.MustCompile(`^@(!%p)`), always("%p"), 0.7},
	{"a load's predicate negated", regexp.MustCompile(`setp\.(ne)\.b32 there`), always("eq"), 0.9},
	{"a copy's predicate negated", regexp.MustCompile(`setp\.(eq)\.b32 not`), always("ne"), 0.9},
	{"rounding to bf16 towards zero", regexp.MustCompile(`cvt\.(rn)\.bf16x2`), always("rz"), 1},
	{"rounding to integers towards zero", regexp.MustCompile(`cvt\.(rni)`), always("rzi"), 0.7},
	{"a shuffle with itself", regexp.MustCompile(`shfl.sync.bfly\S+ %\w+, %\w+, (\d+)`), always("0"), 0.9},
	{"an mbarrier not waited for", regexp.MustCompile(`try_wait.*selp\.b32 %\w+, (1, 0), passed`), always("1, 1"), 1},
	{"bytes expected that do not come", regexp.MustCompile(`expect_tx\S+ _, \[%\w+\], (%\w+);`), always("1048560"), 1},
	{"copies that may not see their mbarrier", regexp.MustCompile(`^(fence\.proxy\.async\S*;)`), always(""), 1},
	{"a product's fence dropped", regexp.MustCompile(`^(wgmma\.fence\S+;)`), always(""), 1},
	{"products not committed", regexp.MustCompile(`^(wgmma\.commit_group\S+;)`), always(""), 1},
	{"products waited for too late", regexp.MustCompile(`^wgmma\.wait_group\S+ (\d)`), later, 1},
	{"a product's sums swapped", regexp.MustCompile(`wgmma\.mma_async\S+ \{(%\w+, %\w+)`), swapped, 1},
	{"a product instead of the sum with it", regexp.MustCompile(`setp\.(ne)\.b32 add`), always("eq"), 1},
	{"a swizzle", regexp.MustCompile(`^or\.b64 %\w+, %\w+, (\d{11});`), changed(1 << 62), 1},
	{"rows described further apart", regexp.MustCompile(`^or\.b64 %\w+, %\w+, (\d{11});`), changed(1 << 32), 1},
	{"depths described further apart", regexp.MustCompile(`^or\.b64 %\w+, %\w+, (\d{11});`), changed(1 << 16), 1},
	{"pixels described further apart", regexp.MustCompile(`^shl\.b64 %\w+, %\w+, (32);`), always("33"), 1},
	{"chunks described further apart", regexp.MustCompile(`^shl\.b32 %\w+, %\w+, (16);`), always("17"), 1},
	{"the wait for the launch before dropped", regexp.MustCompile(`^(griddepcontrol\.wait;)`), always(""), 1},
	{"the next launch let begin first", regexp.MustCompile(`^griddepcontrol\.(wait);`), always("launch_dependents"), 1},
	{"a place 4 bytes further on", regexp.MustCompile(`^(?:ld|st)\.(?:shared|global)[^\[]*\[%\w+(\+-?\d+|)\]`), further, 0.8},
}

const most = 8

func swapped(part string) string {
	one, other, _ := strings.Cut(part, ", ")
	return other + ", " + one
}

func always(text string) func(string) string { return func(string) string { return text } }

// changed adds to a number.
func changed(by int) func(string) string {
	return func(part string) string {
		n, _ := strconv.Atoi(part)
		return fmt.Sprint(n + by)
	}
}

func further(part string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(part, "+"))
	return fmt.Sprintf("+%d", n+4)
}

func chunkFurther(part string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(part, "+"))
	return fmt.Sprintf("+%d", n+16)
}

func later(part string) string {
	n, _ := strconv.Atoi(part)
	return fmt.Sprint(n + 1)
}

// mutant is an entry with a mistake.
type mutant struct{ mistake, symbol, line, text string }

// mutants returns entries with one mistake each, evenly spread over the lines where it can be made.
func (s *subject) mutants(entry string) (all []mutant) {
	lines := strings.Split(entry, "\n")
	for _, m := range mistakes {
		var at []int
		for i, line := range lines {
			if m.pattern.MatchString(line) {
				at = append(at, i)
			}
		}
		count := min(cmp.Or(s.most, most), len(at))
		for j := range count {
			i := at[j*len(at)/count]
			line := lines[i]
			found := m.pattern.FindStringSubmatchIndex(line)
			lines[i] = line[:found[2]] + m.with(line[found[2]:found[3]]) + line[found[3]:]
			made := mutant{m.name, fmt.Sprintf("%s_mutant%d", s.entry, len(all)), line, ""}
			made.text = strings.ReplaceAll(strings.Join(lines, "\n"), s.entry, made.symbol)
			all = append(all, made)
			lines[i] = line
		}
	}
	return all
}

// TestMistakesAreFound introduces mistakes into committed PTX, which must then fail or compute
// wrong results. Without a mistake it must compute the right results.
func TestMistakesAreFound(t *testing.T) {
	replay := NewReplay(t)
	var lock sync.Mutex
	tried := map[string]bool{}
	t.Run("subjects", func(t *testing.T) {
		for _, s := range testenv.Some(t, 1, []subject{
			exponentials(), accuracy(), packing(), packedConvolution(), packedFilter(), filterOfWindows(), forwardOfWindows(), groupedConvolution(), groupedFilter(),
			product("matmul_32x64_bf16", 0.06, 32, 1), product("matmul_32x64_tf32", 0.01, 32, 1), product("matmul_64x64x2_bf16", 0.1, 64, 2),
		}) {
			t.Run(s.entry, func(t *testing.T) {
				t.Parallel()
				for _, name := range s.findMistakes(t, replay) {
					lock.Lock()
					tried[name] = true
					lock.Unlock()
				}
			})
		}
	})
	for _, m := range mistakes {
		if !tried[m.name] && testenv.All(t) {
			t.Errorf("%s: in no kernel", m.name)
		}
	}
}

// findMistakes runs a kernel and its mutants. It returns the names of the mistakes that the kernel
// allows, and fails the test if too few of a kind were found.
func (s subject) findMistakes(t *testing.T, replay *Replay) (tried []string) {
	head, entry := s.text(t)
	mutants := s.mutants(entry)
	text := head + entry
	for _, m := range mutants {
		text += m.text
	}
	program, err := replay.Program(text)
	if err != nil {
		t.Fatal(err)
	}
	right, err := s.run(t, program, s.entry, 60)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(right); err != nil {
		t.Fatal(err)
	}
	count, found := map[string]int{}, map[string]int{}
	for _, m := range mutants {
		count[m.mistake]++
		recording := &Recording{Early: true}
		s.record(recording, m.symbol)
		if same, err := program.Repeats(t, recording, right, 2); err != nil || !same {
			found[m.mistake]++
		} else {
			t.Logf("not found: %s in %q", m.mistake, m.line)
		}
	}
	for _, m := range mistakes {
		n := count[m.name]
		if n == 0 {
			continue
		}
		tried = append(tried, m.name)
		t.Logf("%s: %d of %d found", m.name, found[m.name], n)
		if float64(found[m.name]) < m.share*float64(n) {
			t.Errorf("%s: found %d of %d, want at least the fraction %v", m.name, found[m.name], n, m.share)
		}
	}
	return tried
}
