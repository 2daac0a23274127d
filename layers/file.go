package layers

import (
	"reflect"
	"strings"
	"unicode"
)

// kind is a type of layer or initializer with its name in network files. Its attributes are the
// exported fields.
type kind struct {
	name string
	zero any // the zero value: a struct, or a Sequential
}

// layerKinds has a row for every layer of this package that network files can hold.
var layerKinds = []kind{
	{"conv2d", Conv2D{}},
	{"linear", Linear{}},
	{"flatten", Flatten{}},
	{"maxpool", MaxPool{}},
	{"averagepool", AveragePool{}},
	{"globalaveragepool", GlobalAveragePool{}},
	{"relu", ReLU{}},
	{"tanh", Tanh{}},
	{"sigmoid", Sigmoid{}},
	{"softplus", Softplus{}},
	{"softsign", Softsign{}},
	{"silu", SiLU{}},
	{"hardswish", HardSwish{}},
	{"gelu", GELU{}},
	{"elu", ELU{}},
	{"frn", FilterResponseNorm{}},
	{"groupnorm", GroupNorm{}},
	{"dropout", Dropout{}},
	{"residual", Residual{}},
	{"sequential", Sequential(nil)},
}

// initializerKinds has a row for every initializer of this package.
var initializerKinds = []kind{
	{"he", He{}},
	{"lecun", LeCun{}},
	{"glorot", Glorot{}},
	{"orthogonal", Orthogonal{}},
	{"normal", Normal{}},
	{"constant", Constant{}},
}

// The types of attributes that hold layers or an initializer.
var (
	sequentialType  = reflect.TypeFor[Sequential]()
	initializerType = reflect.TypeFor[Initializer]()
)

// attributeName returns a field's name in files: "no-bias" for NoBias.
func attributeName(field string) string {
	var name strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	return name.String()
}

// attributeNames returns the names of a struct's attributes, in order.
func attributeNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		names = append(names, attributeName(of.Field(i).Name))
	}
	return names
}

func kindNames(kinds []kind) (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}
