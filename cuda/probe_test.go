package cuda_test

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/cuda/kernels"
)

//go:generate go run ./kernels/generate testdata/probe_sm90.cu

//go:embed testdata/probe_sm90.ptx
var probes string

func init() {
	if os.Getenv(emulator.LibraryVariable) != "" {
		return // the library has no such kernels
	}
	if err := kernels.Add("probe_sm90.ptx", probes); err != nil {
		panic(err)
	}
}

// probeImage is the shared memory of the probes: a small integer in bfloat16 at each place, so that
// sums are exact and show which places a product has read.
type probeImage []byte

const probeBytes = 32 << 10

func newProbeImage() probeImage {
	image := make(probeImage, probeBytes)
	for at := 0; at < len(image); at += 2 {
		hash := uint32(at/2+1) * 2654435761
		hash = (hash ^ hash>>15) * 2246822519
		number := float32(int(hash>>16)%9 - 4)
		binary.LittleEndian.PutUint16(image[at:], uint16(math.Float32bits(number)>>16))
	}
	return image
}

func bfloat16(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }

func (m probeImage) at(place int) float64 {
	return bfloat16(binary.LittleEndian.Uint16(m[place%len(m):]))
}

// probeOperand describes where an operand is in shared memory. It begins at byte start. Each group
// of eight places of its depth begins depth bytes after the one before (the leading offset), each
// group of eight rows rows bytes after the one before (the stride offset). If across is set,
// neighbouring rows are contiguous, otherwise neighbours in depth.
type probeOperand struct {
	start, depth, rows int
	across             bool
}

// matrix returns the operand as [64][16]. The columns of a right operand are its rows here.
func (o probeOperand) matrix(m probeImage) (all [64][16]float64) {
	for row := range 64 {
		for k := range 16 {
			place := o.start + k/8*o.depth + row/8*o.rows
			if o.across {
				place += k%8*16 + row%8*2
			} else {
				place += row%8*16 + k%8*2
			}
			all[row][k] = m.at(place)
		}
	}
	return all
}

// probeReading is an operand as a GPU may read it, with a name for that reading. "" is the reading
// that Pollen's kernels rely on.
type probeReading struct {
	name   string
	matrix [64][16]float64
}

// readings returns the readings of an operand in shared memory.
func (o probeOperand) readings(name string, m probeImage) (all []probeReading) {
	for i := range 8 {
		read := o
		var what []string
		if i&1 != 0 {
			read.depth, read.rows = o.rows, o.depth
			what = append(what, name+": leading and stride offset exchanged")
		}
		if i&2 != 0 {
			read.across = !o.across
			what = append(what, name+": transposed")
		}
		if i&4 != 0 {
			read.start = o.start / 128 * 128
			what = append(what, name+": start rounded down to a multiple of 128 bytes")
		}
		all = append(all, probeReading{strings.Join(what, ", "), read.matrix(m)})
	}
	return all
}

// words returns a matrix as a left operand in registers: four words of each of 128 threads.
func words(matrix [64][16]float64) []byte {
	var all []byte
	for thread := range 128 {
		for i := range 4 {
			row, k := thread/32*16+thread%32/4+i%2*8, thread%4*2+i/2*8
			for half := range 2 {
				all = binary.LittleEndian.AppendUint16(all, uint16(math.Float32bits(float32(matrix[row][k+half]))>>16))
			}
		}
	}
	return all
}

// wordReadings returns the readings of a matrix in registers.
func wordReadings(matrix [64][16]float64) (all []probeReading) {
	for i := range 4 {
		var what []string
		var read [64][16]float64
		for row := range 64 {
			for k := range 16 {
				fromRow, fromK := row, k
				if i&1 != 0 { // words 1 and 2 are eight rows and eight columns further on
					fromRow, fromK = row/16*16+k/8*8+row%8, row%16/8*8+k%8
				}
				if i&2 != 0 {
					fromK ^= 1
				}
				read[row][k] = matrix[fromRow][fromK]
			}
		}
		if i&1 != 0 {
			what = append(what, "left: words 1 and 2 exchanged")
		}
		if i&2 != 0 {
			what = append(what, "left: halves of words exchanged")
		}
		all = append(all, probeReading{strings.Join(what, ", "), read})
	}
	return all
}

// sumsOf returns the product of two operands in the layout of the registers, 32 for each of 128
// threads.
func sumsOf(left, right [64][16]float64) (sums [128 * 32]float32) {
	for thread := range 128 {
		for i := range 32 {
			row, column := thread/32*16+thread%32/4+i%4/2*8, i/4*8+thread%4*2+i%2
			for k := range 16 {
				sums[thread*32+i] += float32(left[row][k] * right[column][k])
			}
		}
	}
	return sums
}

// explain compares a product with the products of all readings of its operands. If it is wrong, the
// error names the reading that gives it.
func explain(result []byte, left, right []probeReading) error {
	var got [128 * 32]float32
	for i := range got {
		got[i] = math.Float32frombits(binary.LittleEndian.Uint32(result[4*i:]))
	}
	if got == sumsOf(left[0].matrix, right[0].matrix) {
		return nil
	}
	for _, a := range left {
		for _, b := range right {
			if got == sumsOf(a.matrix, b.matrix) {
				return fmt.Errorf("the sums are wrong; they are right for operands that are read so: %s", strings.Trim(a.name+", "+b.name, ", "))
			}
		}
	}
	want, wrong := sumsOf(left[0].matrix, right[0].matrix), 0
	for i := range got {
		if got[i] != want[i] {
			wrong++
		}
	}
	return fmt.Errorf("%d of %d sums are wrong, and are those of no known reading: got, for each of 128 threads,\n%v", wrong, len(got), got)
}

// TestProbeGroupOperands makes single products by wgmma of operands that are described as in
// Pollen's kernels. If they are wrong, the test reports how the GPU reads its operands instead. It
// also tries the instructions that load operands: transposing ldmatrix, and bulk copies with their
// barriers.
func TestProbeGroupOperands(t *testing.T) {
	device := wgmmaGPU(t)
	if os.Getenv(emulator.LibraryVariable) != "" {
		t.Skip("the emulated GPU was built without the probes")
	}
	image := newProbeImage()
	const product = 4 * 64 * 64
	launch := func(t *testing.T, symbol string, results []int, contents [][]byte, numbers ...int) [][]byte {
		t.Helper()
		read, err := cuda.LaunchAlone(device, symbol, 128, probeBytes+8, results, contents, numbers...)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	check := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	filters := probeOperand{start: 8192, depth: 1024, rows: 128}
	for _, row := range []struct {
		name        string
		left, right probeOperand
	}{
		{"shared, both aligned", filters, probeOperand{start: 1024, depth: 2048, rows: 128}},
		{"shared, pixels of a wide image", filters, probeOperand{start: 1024, depth: 16 * 240, rows: 16 * 32}},
		{"shared, pixels at any line", filters, probeOperand{start: 16 * 69, depth: 16 * 199, rows: 16 * 30}},
		{"shared, overlapping strips", filters, probeOperand{start: 16 * 21, depth: 16 * 151, rows: 16 * 5}},
	} {
		t.Run(row.name, func(t *testing.T) {
			read := launch(t, "probe_shared", []int{product}, [][]byte{image}, probeBytes,
				row.left.start, row.left.depth, row.left.rows, row.right.start, row.right.depth, row.right.rows)
			check(t, explain(read[0], row.left.readings("left", image), row.right.readings("right", image)))
		})
	}
	rights := []struct {
		name  string
		right probeOperand
	}{
		{"aligned", probeOperand{start: 2048, depth: 128, rows: 1024, across: true}},
		{"at any line", probeOperand{start: 2048 + 16*37, depth: 128, rows: 16 * 133, across: true}},
	}
	for _, row := range rights {
		t.Run("registers, "+row.name, func(t *testing.T) {
			left := filters.matrix(image)
			read := launch(t, "probe_registers", []int{product}, [][]byte{image, words(left)}, probeBytes, row.right.start, row.right.depth, row.right.rows)
			check(t, explain(read[0], wordReadings(left), row.right.readings("right", image)))
		})
	}
	for _, row := range rights {
		t.Run("ldmatrix, "+row.name, func(t *testing.T) {
			from := probeOperand{start: 16 * 57, depth: 128, rows: 16 * 91, across: true}
			left := from.matrix(image)
			read := launch(t, "probe_matrices", []int{product, 4 * 4 * 128}, [][]byte{image}, probeBytes, from.start, from.rows,
				row.right.start, row.right.depth, row.right.rows)
			if !bytes.Equal(read[1], words(left)) {
				from.across = false
				for _, reading := range append(wordReadings(left), probeReading{"left: not transposed", from.matrix(image)}) {
					if bytes.Equal(read[1], words(reading.matrix)) {
						t.Fatalf("the words of ldmatrix are wrong; they are right for %s", reading.name)
					}
				}
				t.Fatalf("the words of ldmatrix are wrong, and are those of no known reading: got, for each of 128 threads,\n%x", read[1])
			}
			check(t, explain(read[0], wordReadings(left), row.right.readings("right", image)))
		})
	}
	// An error below may be due to a barrier that never received its bytes.
	for _, row := range []struct{ size, piece int }{{16, 16}, {48, 48}, {1024, 16}, {4096, 4096}, {16 * 333, 16 * 7}, {probeBytes / 3 / 16 * 16, 16 * 650}} {
		t.Run(fmt.Sprintf("%d bytes in pieces of %d", row.size, row.piece), func(t *testing.T) {
			const phases = 3
			got := launch(t, "probe_copies", []int{phases * row.size}, [][]byte{image}, row.size, row.piece, phases, 0)[0]
			if bytes.Equal(got, image[:phases*row.size]) {
				return
			}
			at := 0
			for at < len(got) && got[at] == image[at] {
				at++
			}
			phase := at / row.size
			before := phase > 0 && got[at] == image[at-row.size]
			t.Fatalf("byte %d of phase %d is wrong; it is that of the phase before: %v", at%row.size, phase, before)
		})
	}
}

// hangVariable names the environment variable without which TestWaitsEnd leaves out a GPU: it takes
// ten seconds there, and afterwards the process cannot use the GPU.
const hangVariable = "POLLEN_TEST_HANG"

// TestWaitsEnd: a wait for bytes that never arrive fails the launch, and the error names the
// kernel.
func TestWaitsEnd(t *testing.T) {
	device := wgmmaGPU(t)
	if os.Getenv(emulator.LibraryVariable) != "" {
		t.Skip("the emulated GPU was built without the probes")
	}
	if os.Getenv(cudatest.Variable) == cudatest.CUDA && os.Getenv(hangVariable) == "" {
		t.Skipf("%s is not set", hangVariable)
	}
	_, err := cuda.LaunchAlone(device, "probe_copies", 128, 1024+8, []int{1024}, [][]byte{make([]byte, 1024)}, 1024, 1024, 1, 16)
	if err == nil || !strings.Contains(err.Error(), "probe_copies") || !strings.Contains(err.Error(), "LAUNCH_FAILED") {
		t.Errorf("got %v", err)
	}
}

// TestProbeExplains: explain finds the reading of the operands that gives a product.
func TestProbeExplains(t *testing.T) {
	image := newProbeImage()
	left := probeOperand{start: 8208, depth: 1024, rows: 144}.readings("left", image)
	right := probeOperand{start: 16 * 69, depth: 16 * 199, rows: 16 * 30, across: true}.readings("right", image)
	registers := wordReadings(left[0].matrix)
	for _, lefts := range [][]probeReading{left, registers} {
		for _, a := range lefts {
			for _, b := range right {
				var result []byte
				for _, sum := range sumsOf(a.matrix, b.matrix) {
					result = binary.LittleEndian.AppendUint32(result, math.Float32bits(sum))
				}
				err, want := explain(result, lefts, right), strings.Trim(a.name+", "+b.name, ", ")
				if want == "" && err != nil || want != "" && !strings.HasSuffix(fmt.Sprint(err), ": "+want) {
					t.Errorf("%q: got %v", want, err)
				}
			}
		}
	}
	if err := explain(make([]byte, 4*64*64), left, right); err == nil || !strings.Contains(err.Error(), "no known reading") {
		t.Errorf("zeros are explained: %v", err)
	}
}
