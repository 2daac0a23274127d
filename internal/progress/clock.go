package progress

import "time"

// minJump is how far the clock may drift between two looks without having been set.
const minJump = time.Minute

// ClockJump is how far the clock was set between two times that were looked up in this process, in
// whole seconds; 0 for not at all. Durations that are computed from such times do not jump.
func ClockJump(before, now time.Time) time.Duration {
	return jumped(now.Round(0).Sub(before.Round(0)), now.Sub(before))
}

// jumped compares how much time passed by the clock on the wall and by the steady one.
func jumped(wall, steady time.Duration) time.Duration {
	jump := wall - steady
	if jump.Abs() < minJump {
		return 0
	}
	return jump.Round(time.Second)
}
