package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// guard is the number of sentinel elements on either side of every buffer.
const guard = 32

const sentinel = 12345

// guarded returns n elements with sentinels around them.
func guarded[T Float](n int) (all, inner []T) {
	all = make([]T, n+2*guard)
	for i := range all {
		all[i] = sentinel
	}
	return all, all[guard : guard+n : guard+n]
}

func intact[T Float](all []T) bool {
	for i := range guard {
		if all[i] != sentinel || all[len(all)-1-i] != sentinel {
			return false
		}
	}
	return true
}

func poison[T Float](x []T) {
	for i := range x {
		x[i] = T(math.NaN())
	}
}

func normals[T Float](r *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(r.NormFloat64())
	}
	return x
}

// inputs are the operands of a test's plan; out is the initial contents of Out.
type inputs[T Float] struct{ a, b, bias, out []T }

func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func random[T Float](r *rand.Rand, p *Routine) inputs[T] {
	return inputs[T]{normals[T](r, p.sizeA), normals[T](r, p.sizeB), normals[T](r, p.sizeBias), normals[T](r, p.sizeOut)}
}

// execute runs all tiles, in order or shuffled, on guarded buffers whose undefined parts are NaN,
// and returns the output.
func execute[T Float](t *testing.T, p *Routine, in inputs[T], keepOut bool, shuffle *rand.Rand) []T {
	t.Helper()
	var alls [6][]T
	var o Operands[T]
	for i, buffer := range []struct {
		to     *[]T
		n      int
		values []T
	}{
		{&o.A, p.sizeA, in.a}, {&o.B, p.sizeB, in.b}, {&o.Bias, p.sizeBias, in.bias},
		{&o.Out, p.sizeOut, nil}, {&o.Workspace, p.Workspace, nil}, {&o.Scratch, p.Scratch, nil},
	} {
		alls[i], *buffer.to = guarded[T](buffer.n)
		poison(*buffer.to)
		copy(*buffer.to, buffer.values)
	}
	if keepOut {
		copy(o.Out, in.out)
	}
	for phase, tiles := range p.Phases {
		order := make([]int, tiles)
		for i := range order {
			order[i] = i
		}
		if shuffle != nil {
			shuffle.Shuffle(tiles, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, tile := range order {
			poison(o.Scratch)
			Run(p, phase, tile, o)
		}
	}
	for i, all := range alls {
		if !intact(all) {
			t.Fatalf("buffer %d: written out of bounds", i)
		}
	}
	for i, pair := range [][2][]T{{o.A, in.a}, {o.B, in.b}, {o.Bias, in.bias}} {
		for j := range pair[0] {
			if pair[0][j] != pair[1][j] {
				t.Fatalf("operand %d: element %d was changed", i, j)
			}
		}
	}
	return o.Out
}

// sum is a float64 sum and the sum of its terms' magnitudes.
type sum struct {
	value, magnitude float64
	terms            int
}

func (s *sum) add(v float64) {
	s.value += v
	s.magnitude += math.Abs(v)
	s.terms++
}

// compare checks that each element differs from its sum by at most 4 eps sqrt(n) times the sum of
// the magnitudes of its n terms.
func compare[T Float](t *testing.T, got []T, want []sum) {
	t.Helper()
	eps := 0x1p-52
	if unsafe.Sizeof(got[0]) == 4 {
		eps = 0x1p-23
	}
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i, v := range got {
		tolerance := 4 * eps * math.Sqrt(float64(want[i].terms)) * want[i].magnitude
		if d := math.Abs(float64(v) - want[i].value); !(d <= tolerance) {
			t.Fatalf("element %d is %g, want %g: off by %.3g, tolerance %.3g", i, v, want[i].value, d, tolerance)
		}
	}
}

// check runs a plan in order and shuffled, compares the bits of the two and the values with the
// naive result.
func check[T Float](t *testing.T, p Routine, keepOut bool, naive func(in inputs[T]) []sum) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(p.sizeOut), uint64(p.sizeA)))
	in := random[T](r, &p)
	got := execute(t, &p, in, keepOut, nil)
	again := execute(t, &p, in, keepOut, r)
	for i := range got {
		if math.Float64bits(float64(got[i])) != math.Float64bits(float64(again[i])) {
			t.Fatalf("element %d is %g in order, %g with tiles shuffled", i, got[i], again[i])
		}
	}
	compare(t, got, naive(in))
}

// onEachInstructionSet runs a test with each available instruction set, starting with portable Go.
func onEachInstructionSet(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	most := isa
	for i := portableGo; i <= avx512; i++ {
		if i != portableGo && (i == neon) != (runtime.GOARCH == "arm64") {
			continue
		}
		t.Run(i.String(), func(t *testing.T) {
			if i != portableGo && i != most && !(i == avx2 && most == avx512) {
				t.Skipf("this build, processor or environment has no %v", i)
			}
			use(t, i)
			test(t)
		})
	}
}

// use lowers the instruction set for the rest of a test or benchmark.
func use(t testing.TB, i instructionSet) {
	was := isa
	set(i)
	t.Cleanup(func() { set(was) })
}

func set(i instructionSet) {
	isa = i
	microRows, tableRows = i.rows()
	lanes = i.lanes()
}

// named is a defined float32 type, which must run in assembly, too.
type named float32

func TestRunDoesNotAllocate(t *testing.T) {
	onEachInstructionSet(t, func(t *testing.T) {
		for name, p := range samplePlans(t) {
			o := operands[float32](&p)
			n := testing.AllocsPerRun(2, func() {
				for phase, tiles := range p.Phases {
					for tile := range tiles {
						Run(&p, phase, tile, o)
					}
				}
			})
			if n != 0 {
				t.Errorf("%s: %g allocations", name, n)
			}
		}
	})
}

// Several goroutines that share the tiles, and RunRows, give the same bits as one goroutine.
func TestTilesSideBySide(t *testing.T) {
	const workers = 4
	onEachInstructionSet(t, func(t *testing.T) {
		for name, p := range samplePlans(t) {
			alone, shared := operands[float32](&p), operands[float32](&p)
			for phase, tiles := range p.Phases {
				var wait sync.WaitGroup
				for worker := range workers {
					wait.Go(func() {
						o := shared
						o.Scratch = make([]float32, p.Scratch)
						for tile := worker; tile < tiles; tile += workers {
							Run(&p, phase, tile, o)
						}
					})
				}
				wait.Wait()
				if p.Parts != nil && phase == 0 {
					runParts(&p, alone)
					continue
				}
				if p.Rows > 0 && p.Parts == nil && phase == len(p.Phases)-1 {
					some := ceilDiv(p.Rows, 2*p.Unit) * p.Unit
					RunRows(&p, p.Rows-some, rowsOf(&p, alone, some, p.Rows))
					RunRows(&p, some, rowsOf(&p, alone, 0, some))
					continue
				}
				for tile := range tiles {
					Run(&p, phase, tile, alone)
				}
			}
			for i := range alone.Out {
				if alone.Out[i] != shared.Out[i] {
					t.Fatalf("%s: element %d is %g on its own, %g shared", name, i, alone.Out[i], shared.Out[i])
				}
			}
		}
	})
}

// RunPlanes gives the same bits for some planes of an image as Run for all images.
func TestRunPlanes(t *testing.T) {
	pointwise := Conv2D{B: 3, C: 5, K: 13, H: 40, W: 33, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Bias: true, ReLU: true}
	depthwise := groupedCase(len(groupedCases) - 1)
	onEachInstructionSet(t, func(t *testing.T) {
		divided := pointwise
		divided.B, divided.C, divided.K = 1, 20, 300
		if p, err := divided.Forward(); err != nil || p.plan.(*convPlan).ranges < 2 {
			t.Fatalf("divided: %v, %d ranges", err, p.plan.(*convPlan).ranges)
		}
		for name, prepare := range map[string]func() (Routine, error){
			"pointwise": pointwise.Forward, "divided": divided.Forward, "depthwise": depthwise.Forward,
		} {
			p, err := prepare()
			if err != nil || p.Planes.Count == 0 {
				t.Fatalf("%s: %v, %d planes", name, err, p.Planes.Count)
			}
			o := operands[float32](&p)
			want := execute(t, &p, inputs[float32]{a: o.A, b: o.B, bias: o.Bias}, false, nil)
			out, a := len(want)/p.Rows, len(o.A)/p.Rows
			for image := range p.Rows {
				for lo, hi := 0, 0; lo < p.Planes.Count; lo = hi {
					hi = min(lo+4, p.Planes.Count)
					some := o
					some.A, some.Out = o.A[image*a:][:a], make([]float32, out/p.Planes.Count*(hi-lo))
					if p.Planes.OneToOne {
						some.A = some.A[a/p.Planes.Count*lo : a/p.Planes.Count*hi]
					}
					RunPlanes(&p, lo, hi, some)
					if at := image*out + out/p.Planes.Count*lo; !slices.Equal(some.Out, want[at:at+len(some.Out)]) {
						t.Errorf("%s: planes %d to %d of image %d have other bits", name, lo, hi, image)
					}
				}
			}
			wantPanic(t, func() { RunPlanes(&p, 1, p.Planes.Count+1, o) })
		}
	})
}

func operands[T Float](p *Routine) Operands[T] {
	in := random[T](newRandom(), p)
	return Operands[T]{A: in.a, B: in.b, Bias: in.bias, Out: in.out,
		Workspace: make([]T, p.Workspace), Scratch: make([]T, p.Scratch)}
}

// samplePlans returns one plan of each kind.
func samplePlans(t *testing.T) map[string]Routine {
	t.Helper()
	plans := make(map[string]Routine)
	put := func(name string, p Routine, err error) {
		if err != nil {
			t.Fatal(err)
		}
		plans[name] = p
	}
	c := Conv2D{B: 3, C: 2, H: 9, W: 7, K: 7, R: 3, S: 3, StrideH: 1, StrideW: 2, PadH: 1, PadW: 1, DilationH: 1, DilationW: 1, Bias: true, ReLU: true}
	q := Pool2D{B: 2, C: 3, H: 8, W: 9, R: 2, S: 2, StrideH: 2, StrideW: 2}
	for _, transpose := range []bool{false, true} {
		p, err := Gemm{M: 31, N: 33, K: 300, TransposeA: transpose, TransposeB: transpose, Bias: BiasRow}.Plan()
		put(fmt.Sprintf("gemm transposed %v", transpose), p, err)
	}
	p, err := c.Forward()
	put("conv2d forward", p, err)
	narrow := Conv2D{B: 33, C: 9, H: 7, W: 7, K: 40, R: 1, S: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Bias: true}
	put("conv2d forward by channels", narrow.channels(), nil)
	c.Bias, c.ReLU = false, false
	p, err = c.BackwardInput()
	put("conv2d backward input", p, err)
	p, err = c.BackwardFilter()
	put("conv2d backward filter", p, err)
	for i, name := range map[int]string{5: "depthwise", 14: "grouped"} {
		forward, input, filter, _ := groupedRoutines(t, i)
		put(name+" forward", forward, nil)
		put(name+" backward input", input, nil)
		put(name+" backward filter", filter, nil)
	}
	w := Conv2D{B: 17, C: 9, H: 8, W: 9, K: 17, R: 5, S: 5, StrideH: 1, StrideW: 1, PadH: 2, PadW: 1, DilationH: 1, DilationW: 1}
	put("winograd forward", w.winograd(cookToom75, false), nil)
	put("winograd backward input", w.winograd(cookToom45, true), nil)
	put("winograd backward filter", w.filterWinograd(cookToom45), nil)
	p, err = q.MaxForward()
	put("max pool forward", p, err)
	p, err = q.MaxBackward()
	put("max pool backward", p, err)
	p, err = q.AverageForward()
	put("average pool forward", p, err)
	p, err = q.AverageBackward()
	put("average pool backward", p, err)
	return plans
}

func wantPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	f()
}

// rowsOf returns the operands of rows [lo, hi).
func rowsOf[T Float](p *Routine, o Operands[T], lo, hi int) Operands[T] {
	of := func(x []T) []T { return x[len(x)/p.Rows*lo : len(x)/p.Rows*hi] }
	if o.A = of(o.A); p.rowsOfB() {
		o.B = of(o.B)
	}
	if p.Parts == nil {
		o.Out = of(o.Out)
	}
	return o
}

// runParts runs the first phase by rows, one unit or two at a time, the last part first.
func runParts[T Float](p *Routine, o Operands[T]) {
	parts := len(p.Parts) - 1
	for part := parts - 1; part >= 0; part-- {
		some := p.Unit
		for lo, hi := p.Parts[part], 0; lo < p.Parts[part+1]; lo, some = hi, 2*p.Unit {
			hi = min(lo+some, p.Parts[part+1])
			rows := rowsOf(p, o, lo, hi)
			rows.Workspace = o.Workspace[part*len(o.Workspace)/parts : (part+1)*len(o.Workspace)/parts]
			rows.Add = lo > p.Parts[part]
			RunRows(p, hi-lo, rows)
		}
	}
}

func TestRunRowsRejectsOthers(t *testing.T) {
	w := Conv2D{B: 64, C: 9, H: 4, W: 4, K: 17, R: 5, S: 5, StrideH: 1, StrideW: 1, PadH: 2, PadW: 2, DilationH: 1, DilationW: 1}
	p := w.winograd(cookToom45, false)
	if p.Unit < 2 || p.Unit > 31 {
		t.Fatalf("units are of %d images, the test needs some", p.Unit)
	}
	gemm, err := Gemm{M: 3, N: 4, K: 5}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	all := operands[float32](&p)
	short := rowsOf(&p, all, 0, p.Unit)
	short.Out = short.Out[1:]
	for _, c := range []struct {
		name     string
		p        *Routine
		rows     int
		operands Operands[float32]
	}{
		{"none", &p, 0, rowsOf(&p, all, 0, 0)}, {"more than there are", &p, 65, all}, {"fewer than the operands have", &p, p.Unit, all},
		{"with an element missing", &p, p.Unit, short}, {"of a product", &gemm, 1, operands[float32](&gemm)},
	} {
		t.Run(c.name, func(t *testing.T) {
			wantPanic(t, func() { RunRows(c.p, c.rows, c.operands) })
		})
	}
}

func TestRunRejectsBrokenSizes(t *testing.T) {
	p, err := Gemm{M: 3, N: 4, K: 5}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(o *Operands[float32], phase, tile *int){
		"short a":       func(o *Operands[float32], _, _ *int) { o.A = o.A[1:] },
		"short b":       func(o *Operands[float32], _, _ *int) { o.B = o.B[1:] },
		"unasked bias":  func(o *Operands[float32], _, _ *int) { o.Bias = make([]float32, 3) },
		"long out":      func(o *Operands[float32], _, _ *int) { o.Out = make([]float32, 13) },
		"short scratch": func(o *Operands[float32], _, _ *int) { o.Scratch = nil },
		"phase":         func(_ *Operands[float32], phase, _ *int) { *phase = 1 },
		"tile":          func(_ *Operands[float32], _, tile *int) { *tile = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o, phase, tile := operands[float32](&p), 0, 0
			change(&o, &phase, &tile)
			wantPanic(t, func() { Run(&p, phase, tile, o) })
		})
	}
}
