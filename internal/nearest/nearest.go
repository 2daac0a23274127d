package nearest

import "strings"

// Among completes an error about an unknown name with the names that exist: "did you mean adam?
// There are sgd, adam", or "there are sgd, adam" if none is near. The items may be forms, such as
// "cosine:FIRST,LAST" or "alpha=0.9", of which only the names are compared.
func Among(mistyped string, items []string) string {
	there := "there are "
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = nameOf(item)
	}
	if name := Name(nameOf(mistyped), names); name != "" {
		there = "did you mean " + name + "? There are "
	}
	return there + strings.Join(items, ", ")
}

// nameOf returns the beginning of a form, up to its values.
func nameOf(form string) string {
	if end := strings.IndexAny(form, ":=,<"); end >= 0 {
		form = form[:end]
	}
	return strings.TrimSpace(form)
}

// Name returns the first of the names that differ least from a mistyped one in other than case, ""
// if all differ in more than two letters or in half of them.
func Name(mistyped string, names []string) string {
	mistyped = strings.ToLower(mistyped)
	nearest, least := "", min(3, (len(mistyped)+1)/2)
	for _, name := range names {
		if d := editDistance(mistyped, strings.ToLower(name)); d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// editDistance returns the number of letters to insert, delete, replace or swap with the next one
// that make b of a (the optimal string alignment distance).
func editDistance(a, b string) int {
	var before, last []int // distances of prefixes of a to prefixes of b, for a with two letters less and with one
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(last[j]+1, row[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
