package rules

import "fmt"

// Machine writes the operations of linear maps for an instruction set.
type Machine interface {
	Copy(x Value) Value
	Scaled(factor float64, x Value) Value
	AddTo(v, x Value)
	SubtractFrom(v, x Value)
	AddScaled(v Value, factor float64, x Value) // rounded once
}

// Transform is a linear map of both axes of a patch, in Winograd's algorithms.
type Transform struct {
	Name    string
	Finish  Finishing
	m       matrix
	groups  [][]int
	product product
}

// Finishing is the treatment of results before they are stored.
type Finishing int

// Store stores the result. StoreAdded first adds the previous contents. StoreBiased first adds a
// bias and clamps the result to a floor and a ceiling.
const (
	Store Finishing = iota
	StoreAdded
	StoreBiased
)

func (t Transform) Rows() int    { return len(t.m) }
func (t Transform) Columns() int { return len(t.m[0]) }

// Write writes the map along one axis. load returns the elements, in order, and emit takes the
// results, in order.
func (t Transform) Write(m Machine, load func(j int) Value, emit func(i int, v Value)) {
	t.product(m, t.m, t.groups, load, emit)
}

// Factors returns the factors by which Write multiplies.
func (t Transform) Factors() []float64 {
	r := &recorder{}
	t.Write(r, func(int) Value { return nil }, func(int, Value) {})
	return r.factors
}

// recorder is a Machine that only records factors.
type recorder struct{ factors []float64 }

func (r *recorder) Copy(Value) Value        { return nil }
func (r *recorder) AddTo(_, _ Value)        {}
func (r *recorder) SubtractFrom(_, _ Value) {}

func (r *recorder) Scaled(factor float64, _ Value) Value {
	r.factors = append(r.factors, factor)
	return nil
}

func (r *recorder) AddScaled(_ Value, factor float64, _ Value) { r.factors = append(r.factors, factor) }

// Transforms returns the transforms of all algorithms, in the order of package kernel's numbers.
func Transforms() (all []Transform) {
	for _, a := range algorithms {
		input, filter, spread := a.matrices()
		of := func(name string, m matrix, product product, finish Finishing) {
			all = append(all, Transform{fmt.Sprintf("winograd%s%d%d", name, a.patch, a.taps), finish, m, a.groups(), product})
		}
		of("Input", input, rows, Store)
		of("Output", spread.transposed(), columns, StoreBiased)
		of("Filter", filter, rows, Store)
		of("Spread", spread, rows, Store)
		of("Overlap", input.transposed(), columns, StoreAdded)
		of("Gather", filter.transposed(), columns, Store)
	}
	return all
}

// term is one product of a sum.
type term struct {
	factor float64
	x      Value
}

// linear writes a sum of products. A product by 1, if there is one, comes first, since it is only a
// copy.
func linear(m Machine, terms []term) Value {
	first := 0
	for i := range terms {
		if terms[i].factor == 1 {
			first = i
		}
	}
	var v Value
	if terms[first].factor == 1 {
		v = m.Copy(terms[first].x)
	} else {
		v = m.Scaled(terms[first].factor, terms[first].x)
	}
	for i, s := range terms {
		switch {
		case i == first:
		case s.factor == 1:
			m.AddTo(v, s.x)
		case s.factor == -1:
			m.SubtractFrom(v, s.x)
		default:
			m.AddScaled(v, s.factor, s.x)
		}
	}
	return v
}

// exact returns the first term's factor by which all factors can be divided without rounding to
// float32, or the last term's factor if there is none.
func exact(terms []term) float64 {
	for i := range terms {
		rounds := false
		for _, s := range terms {
			ratio := s.factor / terms[i].factor
			rounds = rounds || float64(float32(ratio)) != ratio
		}
		if !rounds {
			return terms[i].factor
		}
	}
	return terms[len(terms)-1].factor
}

// product writes the product of m and a vector. x loads an element of the vector, and emit takes
// the results. The groups are of rows or of columns of m.
type product func(t Machine, m matrix, groups [][]int, x func(j int) Value, emit func(i int, v Value))

func nonzero(row []float64, x []Value, parity int) (terms []term) {
	for j := parity; j < len(row); j += 2 {
		if row[j] != 0 {
			terms = append(terms, term{row[j], x[j]})
		}
	}
	return terms
}

// rows is a product in which the rows of a group are combinations of two sums that they share: one
// over the even columns, one over the odd ones.
func rows(t Machine, m matrix, groups [][]int, load func(j int) Value, emit func(i int, v Value)) {
	x := make([]Value, len(m[0]))
	for j := range x {
		x[j] = load(j)
	}
	for _, group := range groups {
		if len(group) == 1 {
			i := group[0]
			emit(i, linear(t, append(nonzero(m[i], x, 0), nonzero(m[i], x, 1)...)))
			continue
		}
		var halves [2][]term
		var values [2]Value
		var scales [2]float64
		for parity := range halves {
			for _, i := range group {
				if halves[parity] == nil {
					halves[parity] = nonzero(m[i], x, parity)
				}
			}
			scales[parity] = halves[parity][0].factor
			if divisor := exact(halves[parity]); parity == 1 || divisor == 1 {
				for j := range halves[parity] {
					halves[parity][j].factor /= divisor
				}
			}
			values[parity] = linear(t, halves[parity])
		}
		for _, i := range group {
			var terms []term
			for parity := range halves {
				if of := nonzero(m[i], x, parity); len(of) > 0 {
					factor := of[0].factor / halves[parity][0].factor
					terms = append(terms, term{factor, values[parity]})
				}
			}
			emit(i, linear(t, terms))
		}
	}
}

// columns is a product in which the columns of a group differ only by signs, of which there are two
// patterns.
func columns(t Machine, m matrix, groups [][]int, load func(j int) Value, emit func(i int, v Value)) {
	patterns := map[string]Value{}
	inputs := make([][]term, len(m))
	x := make([]Value, len(m[0]))
	for _, group := range groups {
		for _, j := range group {
			x[j] = load(j)
		}
		for i, row := range m {
			var terms []term
			scale := 0.0
			for _, j := range group {
				if row[j] != 0 {
					if scale == 0 {
						scale = row[j]
					}
					terms = append(terms, term{row[j] / scale, x[j]})
				}
			}
			switch {
			case len(terms) == 0:
			case len(terms) == 1:
				inputs[i] = append(inputs[i], term{scale, terms[0].x})
			default:
				pattern := fmt.Sprint(group, terms)
				if _, ok := patterns[pattern]; !ok {
					patterns[pattern] = linear(t, terms)
				}
				inputs[i] = append(inputs[i], term{scale, patterns[pattern]})
			}
		}
	}
	for i, terms := range inputs {
		emit(i, linear(t, terms))
	}
}
