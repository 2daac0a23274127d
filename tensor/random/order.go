package random

import (
	"math/bits"

	"github.com/pkg/errors"
)

// orderRounds is the number of half-rounds of the Feistel network. Four with perfect round
// functions hide the key in large domains (Luby and Rackoff 1988); small domains and a cheap round
// function need more.
const orderRounds = 8

// orderWidth is the minimum number of bits that a network permutes. With 4 or fewer, eight
// half-rounds do not reach all orders of five or six elements equally often (TestOrderSmallSizes
// fails); 8 leave a margin.
const orderWidth = 8

// Order is a keyed bijection of [0, size): the order in which an epoch visits its data, computed
// element by element and never stored. It is a value that may be copied and used by many
// goroutines.
//
//	order := random.NewOrder(50000, seed, chain, epoch)
//	image := order.At(0) // the first image of the epoch
type Order struct {
	size                uint64
	leftMask, rightMask uint32
	rightBits           uint8
	keys                [orderRounds]uint32
}

// NewOrder returns the order of an epoch. Its keys are quads 0 and 1 of the address (seed, chain,
// step = epoch, OrderStream). It panics if the epoch is above MaxStep.
func NewOrder(size, seed uint64, chain uint32, epoch uint64) Order {
	if epoch > MaxStep {
		panic(errors.Errorf("random: order: epoch must be at most %d, got %d", uint64(MaxStep), epoch))
	}
	width := orderWidth
	if size > 1<<orderWidth {
		width = bits.Len64(size - 1)
	}
	o := Order{size: size, rightBits: uint8(width - width/2)}
	o.leftMask = uint32(uint64(1)<<(width/2) - 1)
	o.rightMask = uint32(uint64(1)<<o.rightBits - 1)
	a := Address{Seed: seed, Chain: chain, Step: epoch, Stream: OrderStream}
	for quad := range orderRounds / 4 {
		words := Philox4x32(a.Counter(uint32(quad)), a.Key())
		copy(o.keys[4*quad:], words[:])
	}
	return o
}

// At returns the element at position index, in [0, size). It panics if index is not below size.
//
// A Feistel network permutes the 2^b numbers of b = max(orderWidth, ceil(log2 size)) bits: each of
// the two halves, of b/2 and b - b/2 bits, is in turn combined by exclusive or with a hash of the
// other. Results outside [0, size) are permuted again (cycle walking, Black and Rogaway 2002),
// which takes 2^b / size passes on average, less than two for sizes of at least 129.
func (o *Order) At(index uint64) uint64 {
	if index >= o.size {
		panic(errors.Errorf("random: order: index must be below the size %d, got %d", o.size, index))
	}
	if o.size == 1 {
		return 0
	}
	for {
		left := uint32(index >> o.rightBits)
		right := uint32(index) & o.rightMask
		for round := 0; round < orderRounds; round += 2 {
			left ^= orderHash(right^o.keys[round]) & o.leftMask
			right ^= orderHash(left^o.keys[round+1]) & o.rightMask
		}
		index = uint64(left)<<o.rightBits | uint64(right)
		if index < o.size {
			return index
		}
	}
}

// orderHash is a bijection of 32 bits in which each bit of the argument changes each bit of the
// result with probability one half (the finaliser of MurmurHash3, Appleby 2011, public domain).
func orderHash(x uint32) uint32 {
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	return x ^ x>>16
}

// Permute returns the element at position index of the order of an epoch. It combines NewOrder and
// At; to look up many elements, keep the Order.
func Permute(index, size, seed uint64, chain uint32, epoch uint64) uint64 {
	o := NewOrder(size, seed, chain, epoch)
	return o.At(index)
}
