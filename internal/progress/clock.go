package progress

import "time"

// minJump is the smallest difference between the wall clock and the monotonic clock that counts as
// a jump.
const minJump = time.Minute

// ClockJump returns by how much the wall clock was set between two times that this process read
// with time.Now, in whole seconds, or 0. Differences of such times use the monotonic clock and do
// not jump.
func ClockJump(before, now time.Time) time.Duration {
	return jumped(now.Round(0).Sub(before.Round(0)), now.Sub(before))
}

// jumped compares the time that passed on the wall clock with that on the monotonic clock.
func jumped(wall, steady time.Duration) time.Duration {
	jump := wall - steady
	if jump.Abs() < minJump {
		return 0
	}
	return jump.Round(time.Second)
}
