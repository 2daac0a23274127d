package optest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// hugeExtents are sizes of an axis, or of two, around which indices of 32 bits, streams of random
// numbers, tiles and memory overflow.
var hugeExtents = []int{46341, 1 << 31, 1<<59 - 1, math.MaxInt, 1 << 24, 1 << 35, 1 << 40, 1 << 62}

// TestHugeShapes applies every op to shapes up to the largest and compiles its gradients, without
// allocating them: each must be an error, or a program of launches that the host can run. All axes
// of one extent are made huge together, so that shapes fit each other.
func TestHugeShapes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		signature := opSignature(&c)
		if c.Speed || seen[signature] && !testenv.All(t) {
			continue
		}
		const few = 4
		extents := testenv.Some(t, few, hugeExtents)
		if seen[signature] {
			extents = extents[:few]
		}
		seen[signature] = true
		for _, set := range extentSets(&c) {
			for _, extent := range extents {
				huge := c.withExtents(set, extent)
				if problem := huge.problem(); problem != "" {
					t.Errorf("%s of %v: %s", c.Name, huge.shapes(), problem)
				}
			}
		}
	}
}

// TestHugeAttributes gives every integer attribute of every op huge, zero and negative values.
func TestHugeAttributes(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		signature := opSignature(&c)
		if c.Build != nil || c.Speed || seen[signature] {
			continue
		}
		seen[signature] = true
		for _, path := range integersOf(reflect.ValueOf(c.Op)) {
			for _, v := range append([]int{math.MinInt, -1, 0}, hugeExtents...) {
				changed := c
				op := reflect.New(reflect.TypeOf(c.Op)).Elem()
				op.Set(reflect.ValueOf(c.Op))
				field := op
				for _, i := range path {
					if field.Kind() == reflect.Array {
						field = field.Index(i)
					} else {
						field = field.Field(i)
					}
				}
				field.SetInt(int64(v))
				changed.Op = op.Interface().(graph.Op)
				if problem := changed.problem(); problem != "" {
					t.Errorf("%s with %+v: %s", c.Name, changed.Op, problem)
				}
			}
		}
	}
}

// opSignature distinguishes rows by op and the ranks of their inputs.
func opSignature(c *Case) string {
	signature := fmt.Sprintf("%T", c.Op)
	if c.Build != nil {
		signature = c.Name
	}
	for _, in := range c.Inputs {
		signature += fmt.Sprint(" ", len(in.Shape))
	}
	return signature
}

// extentSets returns each extent of a row's inputs, and each pair of them.
func extentSets(c *Case) (sets [][]int) {
	var all []int
	for _, in := range c.Inputs {
		if !in.isHeader() {
			all = append(all, in.Shape...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for i, a := range all {
		sets = append(sets, []int{a})
		for _, b := range all[:i] {
			sets = append(sets, []int{a, b})
		}
	}
	return sets
}

// withExtents returns the row with another extent for all axes whose extent is in the set.
func (c Case) withExtents(set []int, extent int) Case {
	inputs := slices.Clone(c.Inputs)
	for i, in := range inputs {
		inputs[i].Shape = slices.Clone(in.Shape)
		for axis, e := range in.Shape {
			if !in.isHeader() && slices.Contains(set, e) {
				inputs[i].Shape[axis] = extent
			}
		}
	}
	c.Inputs = inputs
	return c
}

func (c *Case) shapes() (shapes []tensor.Shape) {
	for _, in := range c.Inputs {
		shapes = append(shapes, in.Shape)
	}
	return shapes
}

// problem compiles the row, and returns what is wrong if that panics or the program could not run.
// An error is no problem.
func (c *Case) problem() (problem string) {
	defer func() {
		if p := recover(); p != nil {
			problem = fmt.Sprint("panic: ", p)
		}
	}()
	s, err := c.compile(tensor.Float32, true, !c.NoGradient)
	if err != nil {
		return ""
	}
	for _, l := range s.launches() {
		for _, a := range l.Arguments {
			if b := a.Buffer; b != nil && (b.Offset < 0 || b.Elements < 1 || b.Bytes() < b.Elements) {
				return fmt.Sprintf("%s: buffer %v at %d overflows", l.Kernel, b, b.Offset)
			}
		}
		for _, phase := range l.Host.Phases {
			if phase.Tiles < 1 {
				return fmt.Sprintf("%s: %d tiles", l.Kernel, phase.Tiles)
			}
		}
		if l.Host.Workspace < 0 || l.Host.Private < 0 {
			return fmt.Sprintf("%s: workspace of %d and %d bytes", l.Kernel, l.Host.Workspace, l.Host.Private)
		}
	}
	return ""
}

// integersOf returns the paths, by indices of fields and elements, to the exported integers of a
// struct.
func integersOf(v reflect.Value) (all [][]int) {
	var visit func(v reflect.Value, path []int)
	visit = func(v reflect.Value, path []int) {
		switch v.Kind() {
		case reflect.Int:
			all = append(all, path)
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					visit(v.Field(i), append(slices.Clip(path), i))
				}
			}
		case reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i), append(slices.Clip(path), i))
			}
		}
	}
	visit(v, nil)
	return all
}
