package plan

// Precision is the type to which matrix products round their operands. Sums are always float32.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32"
	TF32 Precision = "tf32"
	BF16 Precision = "bf16"
)

// The compute capabilities at which plans change, 10 major + minor. SM80 is the first with
// cp.async, ldmatrix and the tensor cores that the kernels use. SM90 is the only one with wgmma:
// kernels compiled for sm_90a load on no other GPU, not even a later one.
const (
	SM80 = 80
	SM90 = 90
)

// Target describes the GPU that a plan is made for, and the features that the plan may use.
type Target struct {
	Precision       Precision
	Multiprocessors int
	Capability      int // 10 major + minor
	Shared          int // the most bytes of shared memory that a block may have
	Chains          int // each is one more block in the grid's z dimension

	WGMMA     bool // convolutions in bf16 may use wgmma; needs capability SM90
	NoPacking bool // convolutions do not work on packed copies
	NoWindows bool // no kernel works on pooling windows

	NoPixels   bool // 1 x 1 convolutions use the kernels of other convolutions
	NoRounding bool // no product rounds its operands once, in shared memory
}
