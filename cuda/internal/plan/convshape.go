package plan

// convShape is the shape of a convolution, in the letters of package graph/op and of CUTLASS:
// images [B C H W], filters [K C R S], result [B K P Q].
type convShape struct{ B, C, H, W, K, R, S, P, Q, strideH, strideW, padH, padW, dilationH, dilationW int }

// convShapeOf reads the shape from a convolution's integer arguments.
func convShapeOf(g *product) (s convShape) {
	for i, to := range []*int{
		&s.B, &s.C, &s.H, &s.W, &s.K, &s.R, &s.S, &s.P, &s.Q, &s.strideH, &s.strideW, &s.padH, &s.padW, &s.dilationH, &s.dilationW,
	} {
		*to = intValue(g.sizes[i])
	}
	return s
}

func (s convShape) taps() int { return s.R * s.S }

// packImage packs x with as much padding as the taps reach.
func (s convShape) packImage() packSpec {
	return packSpec{
		planes: s.B, channels: s.C, planeStride: s.C * s.H * s.W, channelStride: s.H * s.W, height: s.H, width: s.W, top: s.padH, left: s.padW,
		rows: (s.P-1)*s.strideH + (s.R-1)*s.dilationH + 1, columns: (s.Q-1)*s.strideW + (s.S-1)*s.dilationW + 1, blocksFirst: true,
	}
}

// packGradient packs the gradient of y with as much padding as the taps of the image's gradient
// reach. If there are strides, it puts zeros between the elements, so that all taps apply to each
// of the image's pixels.
func (s convShape) packGradient() packSpec {
	reachH, reachW := (s.R-1)*s.dilationH, (s.S-1)*s.dilationW
	k := packSpec{
		planes: s.B, channels: s.K, planeStride: s.K * s.P * s.Q, channelStride: s.P * s.Q, height: s.P, width: s.Q, top: reachH - s.padH, left: reachW - s.padW,
		rows: s.H + reachH, columns: s.W + reachW, blocksFirst: true,
	}
	if s.strideH > 1 || s.strideW > 1 {
		k.spread = [2]int{s.strideH, s.strideW}
	}
	return k
}

// packGradientUnpadded packs the gradient of y without padding.
func (s convShape) packGradientUnpadded() packSpec {
	k := s.packGradient()
	k.top, k.left, k.rows, k.columns, k.spread = 0, 0, s.P, s.Q, [2]int{}
	return k
}

// packFilter packs w for the forward product, as [K blocks taps].
func (s convShape) packFilter() packSpec {
	taps := s.taps()
	return packSpec{planes: s.K, channels: s.C, planeStride: s.C * taps, channelStride: taps, height: 1, width: taps, rows: 1, columns: taps}
}

// packFilterTransposed packs w for the gradient of the image, as [C blocks taps].
func (s convShape) packFilterTransposed() packSpec {
	taps := s.taps()
	return packSpec{planes: s.C, channels: s.K, planeStride: taps, channelStride: s.C * taps, height: 1, width: taps, rows: 1, columns: taps}
}
