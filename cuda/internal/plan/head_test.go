package plan

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestHeadsStay: the fused call of a head takes the place of the head's first call. The calls stay
// separate if one of them follows a call in between, or has other operands.
func TestHeadsStay(t *testing.T) {
	const batch, width, classes = 100, 256, 10
	offset := 0
	buffer := func(elements int) *tensor.Buffer {
		b := tensor.NewBuffer("b", tensor.Scratch, tensor.Float32, elements)
		b.Offset, offset = offset, offset+tensor.Align(b.Bytes())
		return b
	}
	partial, h, w, bias := buffer(25*batch*width), buffer(batch*width), buffer(classes*width), buffer(width)
	logits, dlogits, dh, dw := buffer(batch*classes), buffer(batch*classes), buffer(batch*width), buffer(classes*width)
	labels, dout := buffer(batch), buffer(1)
	numbers := func(all ...int) (arguments []tensor.Argument) {
		for _, n := range all {
			arguments = append(arguments, tensor.Int(n))
		}
		return arguments
	}
	call := func(symbol string, integers []tensor.Argument, buffers ...tensor.Argument) Call {
		return Call{Symbol: symbol, Arguments: append(buffers, integers...), Blocks: [2]int{1, 1}, Threads: 32}
	}
	in, out := tensor.In, tensor.Out
	step := func() []Call {
		return []Call{
			call("slices_f32", numbers(batch*width, 25, 1, width, epilogueBiasColumn|epilogueReLU), out(h), in(partial), in(bias), in(partial)),
			call("matmul_thin_dots_16x1_f32", numbers(batch, classes, width, 0, 1, epilogueBiasColumn, 0, 2, 1), out(logits), in(h), in(w), in(bias)),
			call("cross_entropy_bwd_f32", numbers(batch, classes), out(dlogits), in(logits), in(labels), in(dout)),
			call("matmul_thin_columns_16x1_f32", numbers(classes, width, batch, 1, 0, 0, 1, 1, 1), out(dw), in(dlogits), in(h), in(h)),
			call("matmul_thin_shallow_16x1_f32", numbers(batch, width, classes, 0, 0, epilogueMask, 0, 1, 1), out(dh), in(dlogits), in(w), in(h)),
		}
	}
	for name, c := range map[string]struct {
		change func(calls []Call) []Call
		want   []string
	}{
		"all four": {
			func(calls []Call) []Call { return calls },
			[]string{"head_16_f32", "matmul_thin_columns_16x1_f32"},
		},
		"without slices": {
			func(calls []Call) []Call { return calls[1:] },
			[]string{"head_16_f32", "matmul_thin_columns_16x1_f32"},
		},
		"the activations are pooled": {
			func(calls []Call) []Call { calls[0].Arguments[8] = tensor.Int(epiloguePool); return calls },
			[]string{"slices_f32", "head_16_f32", "matmul_thin_columns_16x1_f32"},
		},
		"the weights change in between": {
			func(calls []Call) []Call { calls[3].Arguments[0] = out(w); return calls },
			[]string{"slices_f32", "matmul_thin_dots_16x1_f32", "cross_entropy_bwd_f32", "matmul_thin_columns_16x1_f32", "matmul_thin_shallow_16x1_f32"},
		},
		"another mask": {
			func(calls []Call) []Call { calls[4].Arguments[3] = in(partial); return calls },
			[]string{"slices_f32", "matmul_thin_dots_16x1_f32", "cross_entropy_bwd_f32", "matmul_thin_columns_16x1_f32", "matmul_thin_shallow_16x1_f32"},
		},
		"no gradient by the activations": {
			func(calls []Call) []Call { return calls[:4] },
			[]string{"slices_f32", "matmul_thin_dots_16x1_f32", "cross_entropy_bwd_f32", "matmul_thin_columns_16x1_f32"},
		},
	} {
		calls := fuseHeads(c.change(step()), &planner{Target: Target{Multiprocessors: 132, Shared: 227 << 10, Chains: 1}})
		var got []string
		for _, c := range calls {
			got = append(got, c.Symbol)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
