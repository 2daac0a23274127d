package assembly

import "github.com/pollen-ml/pollen/tensor/kernel/generate/rules"

// passes are the contexts of several vectors. Each operation writes its instruction for every
// vector before the next operation: a processor that must wait for the result of one vector's
// instruction finds the others' next to it. A value has an element for each vector.
type passes []*pass

// each returns the values of an operation on all vectors.
func (p passes) each(operation func(q *pass, i int) rules.Value) rules.Value {
	values := make([]rules.Value, len(p))
	for i, q := range p {
		values[i] = operation(q, i)
	}
	return values
}

func at(v rules.Value, i int) rules.Value { return v.([]rules.Value)[i] }

func (p passes) one(operation func(q *pass, a rules.Value) rules.Value, a rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return operation(q, at(a, i)) })
}

func (p passes) two(operation func(q *pass, a, b rules.Value) rules.Value, a, b rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return operation(q, at(a, i), at(b, i)) })
}

func (p passes) Load(slice int) rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Load(slice) })
}

func (p passes) Place(slice int) rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Place(slice) })
}

func (p passes) Store(v rules.Value, slice int) {
	for i, q := range p {
		q.Store(at(v, i), slice)
	}
}

func (p passes) Coefficient(i int) rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Coefficient(i) })
}

func (p passes) Held(i int) rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Held(i) })
}

func (p passes) Count(rules.Value) { panic("assembly: the vectors of a sum cannot alternate") }

func (p passes) Zero() rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Zero() })
}

func (p passes) Sign() rules.Value {
	return p.each(func(q *pass, _ int) rules.Value { return q.Sign() })
}

func (p passes) WhereLess(a, b, v rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.WhereLess(at(a, i), at(b, i), at(v, i)) })
}

func (p passes) WhereNotEqual(a, b, v rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.WhereNotEqual(at(a, i), at(b, i), at(v, i)) })
}

func (p passes) ShiftLeft(a rules.Value, bits int) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.ShiftLeft(at(a, i), bits) })
}

func (p passes) ShiftRight(a rules.Value, bits int) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.ShiftRight(at(a, i), bits) })
}

func (p passes) AddProduct(a, b, c rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.AddProduct(at(a, i), at(b, i), at(c, i)) })
}

func (p passes) SubtractProduct(c, a, b rules.Value) rules.Value {
	return p.each(func(q *pass, i int) rules.Value { return q.SubtractProduct(at(c, i), at(a, i), at(b, i)) })
}

func (p passes) Root(a rules.Value) rules.Value          { return p.one((*pass).Root, a) }
func (p passes) Add(a, b rules.Value) rules.Value        { return p.two((*pass).Add, a, b) }
func (p passes) Subtract(a, b rules.Value) rules.Value   { return p.two((*pass).Subtract, a, b) }
func (p passes) Multiply(a, b rules.Value) rules.Value   { return p.two((*pass).Multiply, a, b) }
func (p passes) Divide(a, b rules.Value) rules.Value     { return p.two((*pass).Divide, a, b) }
func (p passes) Maximum(a, b rules.Value) rules.Value    { return p.two((*pass).Maximum, a, b) }
func (p passes) Minimum(a, b rules.Value) rules.Value    { return p.two((*pass).Minimum, a, b) }
func (p passes) And(a, b rules.Value) rules.Value        { return p.two((*pass).And, a, b) }
func (p passes) AndNot(a, b rules.Value) rules.Value     { return p.two((*pass).AndNot, a, b) }
func (p passes) Or(a, b rules.Value) rules.Value         { return p.two((*pass).Or, a, b) }
func (p passes) Xor(a, b rules.Value) rules.Value        { return p.two((*pass).Xor, a, b) }
func (p passes) AddInteger(a, b rules.Value) rules.Value { return p.two((*pass).AddInteger, a, b) }
