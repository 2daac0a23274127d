package kernels

// Loop is a kernel's main loop as ptxas 12.9.86 assembles it for sm_90, which TestSlots counts
// again.
type Loop struct {
	Slots int // instructions that a warp issues in a round
	Items int // elements of a thread in a round of an update or of an elementwise kernel, 0 for a product's stage
}

// Loops are the main loops of kernels that a training step of a convolutional network has. A
// product's round is a stage of 16 in depth, whose slots are all of the loop's, also those for
// operands that lie otherwise: an upper bound. A convolution's on packed copies is a tap of a block
// of channels, 64 in depth of bf16 and 32 of tf32; of their filter's gradient a warp's 64 pixels,
// without the copies' inner loops. Those of an update are the fewest with which a round makes noise.
var Loops = map[string]Loop{
	"sgld_update_f32":                {249, 4},
	"psgld_update_f32":               {351, 4},
	"fsgld_update_f32":               {331, 4},
	"sghmc_update_f32":               {303, 4},
	"baoab_update_f32":               {312, 4},
	"obabo_update_f32":               {303, 4},
	"sgnht_update_euler_f32":         {309, 4},
	"sgd_update_f32":                 {31, 4},
	"momentum_update_f32":            {44, 4},
	"relu_fwd_f32":                   {14, 4},
	"relu_bwd_f32":                   {21, 4},
	"matmul_128x128_fp32":            {1355, 0},
	"matmul_64x128_fp32":             {1393, 0},
	"matmul_32x32_fp32":              {543, 0},
	"matmul_128x128_tf32":            {462, 0},
	"matmul_64x128_tf32":             {370, 0},
	"matmul_64x64_tf32":              {283, 0},
	"matmul_32x64_tf32":              {346, 0},
	"matmul_128x128_bf16":            {407, 0},
	"matmul_64x128_bf16":             {339, 0},
	"matmul_64x64_bf16":              {259, 0},
	"matmul_32x64_bf16":              {322, 0},
	"conv2d_fwd_128x128_fp32":        {1397, 0},
	"conv2d_fwd_64x128_fp32":         {1449, 0},
	"conv2d_fwd_32x32_fp32":          {589, 0},
	"conv2d_fwd_128x128_tf32":        {515, 0},
	"conv2d_fwd_64x128_tf32":         {437, 0},
	"conv2d_fwd_64x64_tf32":          {338, 0},
	"conv2d_fwd_32x64_tf32":          {407, 0},
	"conv2d_fwd_128x128_bf16":        {452, 0},
	"conv2d_fwd_64x128_bf16":         {397, 0},
	"conv2d_fwd_64x64_bf16":          {314, 0},
	"conv2d_fwd_32x64_bf16":          {383, 0},
	"conv2d_bwd_input_128x128_fp32":  {1555, 0},
	"conv2d_bwd_input_64x128_fp32":   {1618, 0},
	"conv2d_bwd_input_32x32_fp32":    {758, 0},
	"conv2d_bwd_input_128x128_tf32":  {702, 0},
	"conv2d_bwd_input_64x128_tf32":   {603, 0},
	"conv2d_bwd_input_64x64_tf32":    {509, 0},
	"conv2d_bwd_input_32x64_tf32":    {571, 0},
	"conv2d_bwd_input_128x128_bf16":  {637, 0},
	"conv2d_bwd_input_64x128_bf16":   {563, 0},
	"conv2d_bwd_input_64x64_bf16":    {485, 0},
	"conv2d_bwd_input_32x64_bf16":    {547, 0},
	"conv2d_bwd_filter_128x128_fp32": {1419, 0},
	"conv2d_bwd_filter_64x128_fp32":  {1503, 0},
	"conv2d_bwd_filter_32x32_fp32":   {622, 0},
	"conv2d_bwd_filter_128x128_tf32": {583, 0},
	"conv2d_bwd_filter_64x128_tf32":  {490, 0},
	"conv2d_bwd_filter_64x64_tf32":   {377, 0},
	"conv2d_bwd_filter_32x64_tf32":   {471, 0},
	"conv2d_bwd_filter_128x128_bf16": {519, 0},
	"conv2d_bwd_filter_64x128_bf16":  {450, 0},
	"conv2d_bwd_filter_64x64_bf16":   {353, 0},
	"conv2d_bwd_filter_32x64_bf16":   {447, 0},
	"conv2d_nhwc_64x128_tf32":        {127, 0},
	"conv2d_nhwc_64x64_tf32":         {87, 0},
	"conv2d_nhwc_32x64_tf32":         {87, 0},
	"conv2d_nhwc_filter_tf32":        {813, 0},
	"conv2d_nhwc_64x128_bf16":        {127, 0},
	"conv2d_nhwc_64x64_bf16":         {87, 0},
	"conv2d_nhwc_32x64_bf16":         {87, 0},
	"conv2d_nhwc_filter_bf16":        {421, 0},
}
