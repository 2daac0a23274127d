package arm64

import "fmt"

// The registers that functions may use. R18 belongs to the platform, R27 and R28 belong to Go, R29
// is the frame pointer and R30 the link register.
var (
	vectorRegisters  = span(0, 31)
	generalRegisters = append(span(0, 17), span(19, 26)...)
)

func span(first, last int) (numbers []int) {
	for n := first; n <= last; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// interval is the range of lines in which a register holds its value.
type interval struct{ first, last int }

// allocate returns a machine register for each of count virtual registers. of returns the number of
// the virtual register that an argument is, or false if it is not one.
func (f *Function) allocate(count int, machine []int, of func(argument any) (int, bool)) []int {
	intervals := f.intervals(count, of)
	given, free := make([]int, count), append([]int(nil), machine...)
	for at := range f.lines {
		for n, i := range intervals {
			if i.first < at && i.last == at || i.first == i.last && i.last == at-1 {
				free = append(free, given[n])
			}
		}
		for n, i := range intervals {
			if i.first != at {
				continue
			}
			if len(free) == 0 {
				panic(fmt.Sprintf("%s: more than %d registers at line %d, %q", f.name, len(machine), at, f.lines[at].format))
			}
			given[n], free = free[0], free[1:]
		}
	}
	return given
}

// intervals returns the live interval of each register. A value that is live at the start of a loop
// and used in it stays live until the loop ends.
func (f *Function) intervals(count int, of func(argument any) (int, bool)) []interval {
	intervals := make([]interval, count)
	for n := range intervals {
		intervals[n] = interval{-1, -1}
	}
	labels, loops := map[string]int{}, []interval(nil)
	for at, l := range f.lines {
		if l.label != "" {
			if _, twice := labels[l.label]; twice {
				panic(fmt.Sprintf("%s: label %s is there twice", f.name, l.label))
			}
			labels[l.label] = at
		}
		for _, a := range l.args {
			if label, is := a.(string); is {
				if begin, behind := labels[label]; behind {
					loops = append(loops, interval{begin, at})
				}
			}
			if n, is := of(a); is {
				if intervals[n].first < 0 {
					intervals[n].first = at
				}
				intervals[n].last = at
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, loop := range loops {
			for n, i := range intervals {
				if i.first >= 0 && i.first < loop.first && i.last > loop.first && i.last < loop.last {
					intervals[n].last, changed = loop.last, true
				}
			}
		}
	}
	return intervals
}
