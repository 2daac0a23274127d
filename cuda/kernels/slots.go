package kernels

// Loop describes a kernel's main loop as ptxas 12.9.86 assembles it for sm_90; TestSlots repeats
// the count.
type Loop struct {
	Slots int // instructions (issue slots) of a warp per round
	Items int // elements of a thread per round, words of a packed copy; 0 for a product's stage
}

// Loops has the main loops of the kernels in a training step of a convolutional network. A round
// is:
//
//   - A product: a stage of 16 in depth. The slots are all of the loop's, for all layouts of the
//     operands: an upper bound. If operands are rounded once, a stage is 32 in depth, a round of
//     the tile 128x128 has two stages, and the slots count the fastest layouts, including the end
//     of a slice.
//   - A convolution of packed copies: one tap of a block of channels, 64 in depth in bf16 and 32 in
//     tf32.
//   - The gradient of its filter: a stage of 64 pixels, with one round of the inner copying loops.
//   - The gradient of a filter from windows: two windows with 9 taps, or one with 27. On the tensor
//     cores a round has 16 windows, of 32 filters and 32 taps.
//   - An update: the fewest slots with which a round makes noise.
//   - A packed copy: the whole kernel, which has no loop, or only a short one for the border. For
//     windows in chunks the count is an upper bound.
var Loops = map[string]Loop{
	"sgld_update_f32":                {248, 4},
	"psgld_update_f32":               {348, 4},
	"fsgld_update_f32":               {329, 4},
	"sghmc_update_f32":               {299, 4},
	"baoab_update_f32":               {307, 4},
	"obabo_update_f32":               {299, 4},
	"sgnht_update_euler_f32":         {305, 4},
	"sgd_update_f32":                 {33, 4},
	"momentum_update_f32":            {48, 4},
	"nhwc_pack_tf32":                 {244, 4},
	"nhwc_pack_bf16":                 {269, 4},
	"nhwc_pack_chunks_bf16":          {279, 4},
	"nhwc_pack_windows_tf32":         {284, 4},
	"nhwc_pack_windows_bf16":         {330, 4},
	"nhwc_pack_windows_chunks_bf16":  {852, 16},
	"relu_fwd_f32":                   {14, 4},
	"relu_bwd_f32":                   {21, 4},
	"matmul_128x128_fp32":            {1389, 0},
	"matmul_64x128_fp32":             {1651, 0},
	"matmul_32x32_fp32":              {697, 0},
	"matmul_128x128_tf32":            {750, 0},
	"matmul_64x128_tf32":             {636, 0},
	"matmul_64x64_tf32":              {432, 0},
	"matmul_32x64_tf32":              {543, 0},
	"matmul_128x128_bf16":            {678, 0},
	"matmul_64x128_bf16":             {568, 0},
	"matmul_64x64_bf16":              {414, 0},
	"matmul_32x64_bf16":              {519, 0},
	"conv2d_fwd_128x128_fp32":        {1407, 0},
	"conv2d_fwd_64x128_fp32":         {1454, 0},
	"conv2d_fwd_32x32_fp32":          {589, 0},
	"conv2d_fwd_128x128_tf32":        {515, 0},
	"conv2d_fwd_64x128_tf32":         {438, 0},
	"conv2d_fwd_64x64_tf32":          {338, 0},
	"conv2d_fwd_32x64_tf32":          {407, 0},
	"conv2d_fwd_128x128_bf16":        {454, 0},
	"conv2d_fwd_64x128_bf16":         {404, 0},
	"conv2d_fwd_64x64_bf16":          {314, 0},
	"conv2d_fwd_32x64_bf16":          {383, 0},
	"conv2d_bwd_input_128x128_fp32":  {1581, 0},
	"conv2d_bwd_input_64x128_fp32":   {1618, 0},
	"conv2d_bwd_input_32x32_fp32":    {758, 0},
	"conv2d_bwd_input_128x128_tf32":  {702, 0},
	"conv2d_bwd_input_64x128_tf32":   {602, 0},
	"conv2d_bwd_input_64x64_tf32":    {509, 0},
	"conv2d_bwd_input_32x64_tf32":    {573, 0},
	"conv2d_bwd_input_128x128_bf16":  {637, 0},
	"conv2d_bwd_input_64x128_bf16":   {563, 0},
	"conv2d_bwd_input_64x64_bf16":    {485, 0},
	"conv2d_bwd_input_32x64_bf16":    {549, 0},
	"conv2d_bwd_filter_128x128_fp32": {1445, 0},
	"conv2d_bwd_filter_64x128_fp32":  {1506, 0},
	"conv2d_bwd_filter_32x32_fp32":   {622, 0},
	"conv2d_bwd_filter_128x128_tf32": {583, 0},
	"conv2d_bwd_filter_64x128_tf32":  {490, 0},
	"conv2d_bwd_filter_64x64_tf32":   {377, 0},
	"conv2d_bwd_filter_32x64_tf32":   {471, 0},
	"conv2d_bwd_filter_128x128_bf16": {519, 0},
	"conv2d_bwd_filter_64x128_bf16":  {452, 0},
	"conv2d_bwd_filter_64x64_bf16":   {353, 0},
	"conv2d_bwd_filter_32x64_bf16":   {447, 0},
	"conv2d_nhwc_64x128_tf32":        {127, 0},
	"conv2d_nhwc_64x96_tf32":         {108, 0},
	"conv2d_nhwc_64x64_tf32":         {87, 0},
	"conv2d_nhwc_32x64_tf32":         {87, 0},
	"conv2d_nhwc_filter_tf32":        {814, 0},
	"conv2d_nhwc_64x128_bf16":        {127, 0},
	"conv2d_nhwc_64x96_bf16":         {108, 0},
	"conv2d_nhwc_64x64_bf16":         {87, 0},
	"conv2d_nhwc_32x64_bf16":         {87, 0},
	"conv2d_nhwc_filter_bf16":        {421, 0},
	"matmul_64x32_tf32":              {535, 0},
	"matmul_64x32_bf16":              {511, 0},
	"conv2d_fwd_64x32_tf32":          {382, 0},
	"conv2d_fwd_64x32_bf16":          {358, 0},
	"conv2d_bwd_input_64x32_tf32":    {563, 0},
	"conv2d_bwd_input_64x32_bf16":    {539, 0},
	"conv2d_bwd_filter_64x32_tf32":   {442, 0},
	"conv2d_bwd_filter_64x32_bf16":   {419, 0},
	"matmul_128x128x2_tf32":          {799, 0},
	"matmul_64x64x2_tf32":            {478, 0},
	"matmul_128x128x2_bf16":          {695, 0},
	"matmul_64x64x2_bf16":            {454, 0},
	"matmul_rounded_128x128_bf16":    {134, 0},
	"matmul_rounded_128x64_bf16":     {147, 0},
	"matmul_rounded_64x128_bf16":     {147, 0},
	"conv2d_windows_filter_9_f32":    {67, 0},
	"conv2d_windows_filter_27_f32":   {88, 0},
	"conv2d_windows_pool_tf32":       {557, 0},
	"conv2d_windows_pool_bf16":       {617, 0},
	"conv2d_windows_filter_tf32":     {551, 0},
	"conv2d_windows_filter_bf16":     {427, 0},
}
