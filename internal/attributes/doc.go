// Package attributes reads and writes the fields of a struct as text, as in "alpha=0.2,every=10".
//
// The attributes of a struct are its exported fields that are numbers, words or booleans, in their
// order, by names such as "weight-decay" for WeightDecay. Other fields are left as they are.
package attributes
