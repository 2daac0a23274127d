package kernel

// runConv2D computes a tile of a phase of a convolution by any of the algorithms among which Conv2D
// chooses. rows is the number of rows that the operands hold, if the routine has rows.
func runConv2D[T Float](p *Routine, phase, tile, rows int, o Operands[T]) {
	switch plan := p.plan.(type) {
	case *convPlan:
		runDirect(plan, p.kind, phase, tile, rows, o)
	case *channelsPlan:
		if phase == 0 {
			packChannels(plan, tile, o.B, o.Workspace)
		} else {
			channelsTile(plan, tile, rows, o)
		}
	case *scatterPlan:
		if phase == 0 {
			packFilter(plan, tile, o.B, o.Workspace)
		} else {
			scatterTile(plan, tile, rows, o)
		}
	case *linesPlan:
		if phase == 0 {
			linesTile(plan, tile, o)
		} else {
			combineLines(plan, tile, o.Workspace, o.Out)
		}
	case *winogradPlan:
		if phase == 0 {
			winogradFilter(plan, tile, o.B, o.Workspace, o.Scratch)
		} else {
			winogradTile(plan, tile, rows, o.A, o.Workspace, o.Bias, o.Out, o.Scratch)
		}
	case *winogradGradient:
		if phase == 0 {
			winogradTileSums(plan, tile, o)
		} else {
			winogradCombine(plan, tile, o)
		}
	}
}

// runDirect is runConv2D for the direct convolutions.
func runDirect[T Float](p *convPlan, k kind, phase, tile, rows int, o Operands[T]) {
	switch {
	case k == kindConv2DForward:
		convTile(p, tile, rows, o.A, o.B, o.Bias, o.Out, o.Scratch)
	case k == kindConv2DBackwardInput && phase == 0:
		flipFilter(p, tile, o.B, o.Workspace)
	case k == kindConv2DBackwardInput:
		convTile(p, tile, rows, o.A, o.Workspace, nil, o.Out, o.Scratch)
	case phase == 0:
		filterTile(p, tile, o)
	default:
		combineFilter(p, tile, o.Workspace, o.Out)
	}
}
