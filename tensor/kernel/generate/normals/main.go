// Command normals writes the NEON functions of package random and their Go stubs. They perform the
// operations of philox and boxMuller in the same order; a test of package random compares the bits.
// The coefficients of the polynomials in normal.go are repeated here.
package main

import . "github.com/pollen-ml/pollen/tensor/kernel/generate/arm64"

const (
	rounds = 10
	set    = 4 // quads, whose words are four vectors
	sets   = 2 // of a group of 32 numbers
	bytes  = 16
)

func main() {
	f := &File{Package: "random"}
	groupsOf(f, "normalGroups", "normals", boxMuller)
	groupsOf(f, "uniformGroups", "uniforms", uniforms)
	f.Main()
}

// draws is a function that is being written and the address of its constants.
type draws struct {
	*Function
	file      *File
	constants X
}

// word loads a number into all lanes.
func (d draws) word(bits uint32) V {
	return d.Of("ldr q%d, [x%d, #%d]", d.constants, d.file.Constant(bits))
}

func (d draws) float(v float32) V { return d.Of("ldr q%d, [x%d, #%d]", d.constants, d.file.Float(v)) }

// groupsOf writes a function that turns the words of each set of quads into numbers.
func groupsOf(file *File, name, what string, numbers func(d draws, words [4]V) [4]V) {
	f := file.Function(name, "func(dst *float32, groups int, k0, k1, c0, c1, c2, c3 uint32)",
		"writes the "+what+" of 8*groups quads, groups at least 1, to dst. The first has the Philox counter (c0, c1, c2, c3), "+
			"the others count c0 up; (k0, k1) is the key.")
	dst, groups := f.Param("dst"), f.Param("groups")
	d := draws{f, file, file.Constants(f)}
	key := [2]V{f.Lanes("k0"), f.Lanes("k1")}
	counter := f.Lanes("c0")
	f.Arm("add v%d.4s, v%d.4s, v%d.4s", counter, counter, f.LaneNumbers())
	c1, c2, c3 := f.Lanes("c1"), f.Lanes("c2"), f.Lanes("c3")
	f.Label("group")
	var state [sets][4]V
	for i := range state {
		state[i] = [4]V{f.Of("mov v%d.16b, v%d.16b", counter), c1, c2, c3}
		f.Arm("add v%d.4s, v%d.4s, v%d.4s", counter, counter, d.word(set))
	}
	for i, words := range d.philox(state, key) {
		quads := f.Transposed(numbers(d, words))
		for j := 0; j < len(quads); j += 2 {
			f.Arm("stp q%d, q%d, [x%d, #%d]", quads[j], quads[j+1], dst, (len(quads)*i+j)*bytes)
		}
	}
	f.Go("ADD $%d, R%d", sets*set*bytes, dst)
	f.Go("SUBS $1, R%d", groups)
	f.Go("BNE %s", "group")
	f.Go("RET")
}

// philox performs the rounds on all sets, which take turns:
//
//	(c0, c1, c2, c3) <- (hi(M1*c2) ^ c1 ^ k0, lo(M1*c2), hi(M0*c0) ^ c3 ^ k1, lo(M0*c0)); (k0, k1) += (W0, W1)
func (d draws) philox(state [sets][4]V, key [2]V) [sets][4]V {
	m0, m1, w0, w1 := d.word(0xD2511F53), d.word(0xCD9E8D57), d.word(0x9E3779B9), d.word(0xBB67AE85)
	for round := range rounds {
		if round > 0 {
			key = [2]V{d.Of("add v%d.4s, v%d.4s, v%d.4s", key[0], w0), d.Of("add v%d.4s, v%d.4s, v%d.4s", key[1], w1)}
		}
		for i, c := range state {
			high0, low0 := d.product(c[0], m0)
			high1, low1 := d.product(c[2], m1)
			state[i] = [4]V{d.xor(d.xor(c[1], key[0]), high1), low1, d.xor(d.xor(c[3], key[1]), high0), low0}
		}
	}
	return state
}

func (d draws) xor(a, b V) V { return d.Of("eor v%d.16b, v%d.16b, v%d.16b", a, b) }

// product returns the upper and the lower words of the products.
func (d draws) product(a, b V) (high, low V) {
	first, second := d.Of("umull v%d.2d, v%d.2s, v%d.2s", a, b), d.Of("umull2 v%d.2d, v%d.4s, v%d.4s", a, b)
	return d.Of("uzp2 v%d.4s, v%d.4s, v%d.4s", first, second), d.Of("uzp1 v%d.4s, v%d.4s, v%d.4s", first, second)
}

// uniforms writes the operations of uniform in package random.
func uniforms(d draws, words [4]V) (results [4]V) {
	one, scale := d.word(1), d.float(0x1p-24)
	for i, w := range words {
		v := d.Of("add v%d.4s, v%d.4s, v%d.4s", d.Of("ushr v%d.4s, v%d.4s, #8", w), one)
		results[i] = d.Of("fmul v%d.4s, v%d.4s, v%d.4s", d.Of("scvtf v%d.4s, v%d.4s", v), scale)
	}
	return results
}
