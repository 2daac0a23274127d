package assembly

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/pollen-ml/pollen/tensor/kernel/generate/rules"
)

// widePass is a pass whose elements are converted to float64 when they are loaded. Its coefficients
// and sums are float64.
type widePass struct{ *pass }

func (p widePass) Load(slice int) rules.Value {
	v := p.new()
	VCVTPS2PD(p.place(slice), v)
	return v
}

func (p widePass) Store(v rules.Value, slice int) {
	if p.lanes == vector {
		half := XMM()
		VCVTPD2PSY(v.(Op), half)
		VMOVUPS(half, p.place(slice))
		return
	}
	half := YMM()
	VCVTPD2PS(v.(Op), half)
	VMOVUPS(half, p.place(slice))
}

func (p widePass) Count(v rules.Value) { VADDPD(v.(Op), p.sums[p.part], p.sums[p.part]) }

func (p widePass) Add(a, b rules.Value) rules.Value      { return p.of(VADDPD, b, a) }
func (p widePass) Subtract(a, b rules.Value) rules.Value { return p.of(VSUBPD, b, a) }
func (p widePass) Multiply(a, b rules.Value) rules.Value { return p.of(VMULPD, b, a) }
