package stock

import (
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
)

// layouts has the types of Gorgonia v0.9.18 that are read by reflection, with all their fields. In
// another version a field may have another meaning, so that a type with other fields is an error.
// Each text lists the fields in order, as name and type, separated by commas.
var layouts = map[string]string{
	"*gorgonia.BatchNormOp": "momentum float64, epsilon float64, dims int, " +
		"runningMean *tensor.Dense, runningVariance *tensor.Dense, saveMean *tensor.Dense, " +
		"saveVariance *tensor.Dense, alpha *tensor.Dense, beta *tensor.Dense, training bool",
	"*gorgonia.GroupNormOp": "numGroups int, numChannels int, epsilon float64, " +
		"mean *tensor.Dense, rstd *tensor.Dense",
	"*gorgonia.avgPoolOp": "unpaddedB int, unpaddedC int, unpaddedH int, unpaddedW int, " +
		"h int, w int, padNorth int, padWest int, padSouth int, padEast int, explicitPadding bool, " +
		"strideH int, strideW int, mask tensor.Tensor",
	"*gorgonia.dropoutOp":           "probability float64, isTraining bool, rndGen gorgonia.randomGenF",
	"*gorgonia.globalAveragePoolOp": "",
	"*gorgonia.maxOp":               "along gorgonia.axes, d int",
	"*gorgonia.maxPoolOp": "unpaddedB int, unpaddedC int, unpaddedH int, unpaddedW int, " +
		"h int, w int, padNorth int, padWest int, padSouth int, padEast int, explicitPadding bool, " +
		"strideH int, strideW int, mask tensor.Tensor",
	"*gorgonia.repeatOp":      "along int, inputShape tensor.Shape",
	"*gorgonia.sliceOp":       "Slice tensor.Slice, along int, a int, d int",
	"*gorgonia.softmaxOp":     "shape tensor.Shape, axis int, isLog bool",
	"*gorgonia.upsampleOp":    "stride int",
	"gorgonia.atOp":           "coordinates gorgonia.coordinates, d int",
	"gorgonia.concatOp":       "axis int, d int, children int",
	"gorgonia.constantScalar": "v gorgonia.Scalar",
	"gorgonia.constantTensor": "v tensor.Tensor",
	"gorgonia.elemBinOp": "ʘBinaryOperator gorgonia.ʘBinaryOperator, arg0 hm.Type, arg1 hm.Type, " +
		"retSame bool",
	"gorgonia.elemUnaryOp": "ʘUnaryOperator gorgonia.ʘUnaryOperator, argTensor bool, " +
		"numericResult bool",
	"gorgonia.im2colOp": "h int, w int, padH int, padW int, strideH int, strideW int, " +
		"dilationH int, dilationW int",
	"gorgonia.letOp": "",
	"gorgonia.linAlgBinOp": "āBinaryOperator gorgonia.āBinaryOperator, transA bool, " +
		"transB bool",
	"gorgonia.maxBetween":  "",
	"gorgonia.minBetween":  "",
	"gorgonia.randomOp":    "which gorgonia.randomness, shape tensor.Shape, dt tensor.Dtype, a float64, b float64",
	"gorgonia.readOp":      "into *gorgonia.Value",
	"gorgonia.reshapeOp":   "from tensor.Shape, to tensor.Shape",
	"gorgonia.scalarBinOp": "ʘBinaryOperatorType gorgonia.ʘBinaryOperatorType, t tensor.Dtype",
	"gorgonia.sizeOp":      "axis int, d int, val int",
	"gorgonia.sumOp":       "along gorgonia.axes, d int, inputShape tensor.Shape",
	"gorgonia.tBinOp":      "ʘBinaryOperatorType gorgonia.ʘBinaryOperatorType, tensorLeft bool",
	"gorgonia.transposeOp": "pattern []int, d int",
	"*gorgonia.Node": "t hm.Type, shape tensor.Shape, op gorgonia.Op, children gorgonia.Nodes, " +
		"name string, group string, groups encoding.Groups, g *gorgonia.ExprGraph, " +
		"boundTo gorgonia.Value, dataOn gorgonia.Device, derivOf gorgonia.Nodes, " +
		"deriv *gorgonia.Node, id int64, hash uint32, hashed bool, inferredShape bool, " +
		"unchanged bool, isStmt bool, ofInterest bool",
	"*gorgonia.tapeMachine": "ExternMetadata gorgonia.ExternMetadata, p *gorgonia.program, " +
		"locMap map[*gorgonia.Node]gorgonia.register, cpumem []gorgonia.Value, " +
		"gpumem []gorgonia.Value, pc int, bindNodesDV gorgonia.Nodes, watchNodes gorgonia.Nodes, " +
		"watchRegs []gorgonia.register, watchNodeIDs []gorgonia.NodeID, logger *log.Logger, " +
		"buf *bytes.Buffer, valueFmt string, tabcount int, logFlags uint16, " +
		"closureQueue []func() error, runFlags uint16, evalMode bool",
}

// gorgoniaPath is the import path of the types in layouts.
const gorgoniaPath = "gorgonia.org/gorgonia"

// attributes are the fields of one of Gorgonia's values, exported or not, such as the padding of a
// maxPoolOp. Reflection can read unexported numbers and pointers, but not return them as
// interfaces.
type attributes struct {
	kind   string // the type's name without package and pointer; "" for a type that is not in layouts
	fields reflect.Value
}

// attributesOf compares a value's type with layouts and returns its fields. A type that is not in
// layouts is not an error; the translator then refuses the node by its empty kind.
func attributesOf(value any) (attributes, error) {
	v := reflect.ValueOf(value)
	name := v.Type().String()
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	want, known := layouts[name]
	if !known || v.Type().PkgPath() != gorgoniaPath {
		return attributes{}, nil
	}
	var fields []string
	for i := range v.NumField() {
		fields = append(fields, v.Type().Field(i).Name+" "+v.Type().Field(i).Type.String())
	}
	if got := strings.Join(fields, ", "); got != want {
		return attributes{}, errors.Errorf("stock: type %s must have the fields of Gorgonia v0.9.18 (%s), got (%s)", name, want, got)
	}
	return attributes{kind: v.Type().Name(), fields: v}, nil
}

// is reports whether the value is of one of the types.
func (a attributes) is(kinds ...string) bool {
	return slices.Contains(kinds, a.kind)
}

// int, bool, float and ints read a field by its name in Gorgonia. They panic for a field that the
// type does not have, which layouts excludes.
func (a attributes) int(name string) int {
	field := a.fields.FieldByName(name)
	if field.CanUint() {
		return int(field.Uint())
	}
	return int(field.Int())
}

func (a attributes) bool(name string) bool     { return a.fields.FieldByName(name).Bool() }
func (a attributes) float(name string) float64 { return a.fields.FieldByName(name).Float() }

func (a attributes) ints(name string) []int {
	field := a.fields.FieldByName(name)
	list := make([]int, field.Len())
	for i := range list {
		list[i] = int(field.Index(i).Int())
	}
	return list
}

// nodes reads a field of type gorgonia.Nodes. The pointers come from unexported fields, which
// reflection returns only as unsafe pointers; their type is known from layouts.
func (a attributes) nodes(name string) gorgonia.Nodes {
	field := a.fields.FieldByName(name)
	list := make(gorgonia.Nodes, field.Len())
	for i := range list {
		list[i] = (*gorgonia.Node)(field.Index(i).UnsafePointer())
	}
	return list
}

// binary returns the operator of an elemBinOp. Gorgonia keeps it in an interface whose value, a
// scalarBinOp or a tBinOp, has its number.
func (a attributes) binary() (binaryOp, error) {
	operator := a.fields.FieldByName("ʘBinaryOperator").Elem()
	inner, err := attributesOfType(operator)
	if err != nil {
		return 0, err
	}
	return binaryOp(inner.int("ʘBinaryOperatorType")), nil
}

// attributesOfType is attributesOf for the struct in an unexported field, whose value reflection
// does not return as an interface. It checks a zero value of the same type instead. Here, a type
// that is not in layouts is an error.
func attributesOfType(v reflect.Value) (attributes, error) {
	checked, err := attributesOf(reflect.New(v.Type()).Elem().Interface())
	if err == nil && checked.kind == "" {
		err = errors.Errorf("stock: type %s is not of Gorgonia v0.9.18", v.Type())
	}
	return attributes{kind: checked.kind, fields: v}, err
}

// into returns the variable to which a readOp writes.
func (a attributes) into() *gorgonia.Value {
	return (*gorgonia.Value)(a.fields.FieldByName("into").UnsafePointer())
}

// clearValue removes a node's value, so that a stale one is not taken for the last run's.
// Gorgonia has no function for this: it sets the unexported field in place.
func clearValue(n *gorgonia.Node) {
	field := reflect.ValueOf(n).Elem().FieldByName("boundTo")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().SetZero()
}

// binaryOp is an operator on two numbers, in the order of Gorgonia's constants.
type binaryOp int

const (
	add binaryOp = iota
	subtract
	multiply
	divide
	power
	less
	greater
	lessOrEqual
	greaterOrEqual
	equal
	notEqual
)

// compares reports whether the operator's result is a truth value, as bool or as 0 and 1.
func (r binaryOp) compares() bool { return r >= less }

// product is an operator of linear algebra, in the order of Gorgonia's constants.
type product int

const (
	matrixProduct  product = iota // [M K] by [K N]
	matrixByVector                // [M K] by [K]
	innerProduct                  // [K] by [K]
	outerProduct                  // [M] by [N]
	batchedProduct                // [... M K] by [... K N]
)
