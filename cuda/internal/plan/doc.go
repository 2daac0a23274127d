// Package plan turns a workload's launches into calls of kernels for one GPU. It decides which
// kernels compute a step, with which grids, blocks and shared memory, where their results are in
// memory, and which calls must follow which. It never calls the driver, so that a plan can be made,
// read and tested on any machine.
//
// # What goes in
//
// A tensor.Workload has the launches of a step in sequence. Each launch names its calls: a kernel,
// its arguments, and the grid that the kernel is written for, such as "a thread for each element"
// or "a matrix product of 64 x 19600 x 1600". A Target describes what a plan is made for: the GPU's
// number of multiprocessors, compute capability and shared memory, the precision, the number of
// chains, and the features that are left out.
//
// # What comes out
//
// A Plan has the calls of a step, in an order that is valid, and the bytes of scratch memory that
// they need. A Call is what cuLaunchKernel takes: a symbol, a grid, a block, bytes of dynamic
// shared memory, arguments. Which calls may run side by side is not part of a Call. Dependencies
// finds it from the memory that the calls read and write.
//
// For example, the forward convolution of a pooled layer, with its bias, its ReLU and its pooling,
// is three launches of a workload and becomes, in bf16 on an H100, three calls:
//
//	nhwc_pack_chunks_bf16         packs the images, channels last, rounded to bf16
//	nhwc_pack_chunks_bf16         packs the filters
//	conv2d_nhwc_group_14x16_bf16  multiplies by wgmma; bias, ReLU and pooling are its epilogue
//
// The packed images are a buffer of the workspace. The filter's gradient reads the same copy later
// in the step, without a call that packs.
//
// A plan also has the calls of each launch on its own, which give the same bits. A run never uses
// them. The device uses them to search, launch by launch, for the first number that is not finite.
//
// # How kernels are chosen
//
// Where several kernels can compute a product, the plan takes the one with the lowest estimated
// cost, in clock cycles of a multiprocessor (cost.go). One rule limits that choice: a chain's bits
// must not depend on how many other chains there are. So every choice that changes the order in
// which a sum is added up, such as the number of slices of a product's depth, is made as for one
// chain, or by the costs for one chain and for manyChains together. Other choices, such as the
// tile's size, are made for the actual number of chains.
//
// # Where to begin
//
// target.go and call.go have the types, plan.go planStep, which goes through a step, and planner.go
// its state. lower.go lowers one launch, and chooses among the ways to compute a product.
// product.go, tile.go and split.go have the simplest way, which introduces the ideas of all others:
// rounded.go (many chains), thin.go (few rows or columns), packspec.go, packing.go, packed.go and
// packedfilter.go (convolutions on packed copies, by mma.sync), wgmma.go and wgmmafilter.go,
// windowforward.go and windowfilter.go (first layers). pooling.go, unpool.go, biasgrad.go,
// droppable.go, gathered.go, head.go and fuse.go change a step as a whole. dependencies.go and
// scratch.go find the order and the memory, ahead.go the calls that need not wait for the step
// before. force.go is for tests.
package plan
