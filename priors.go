package pollen

import (
	"maps"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/langevin"
)

// parsePriors reads the priors of some layers, "conv1=gaussian:0.3/linear2.bias=flat".
func parsePriors(text string) (map[string]langevin.Prior, error) {
	priors := map[string]langevin.Prior{}
	for _, item := range strings.Split(text, "/") {
		name, family, _ := strings.Cut(item, "=")
		prior, err := langevin.ParsePrior(strings.TrimSpace(family))
		if name = strings.TrimSpace(name); err != nil || name == "" {
			return nil, invalid("priors: %q, wants LAYER=PRIOR, with / between layers, PRIOR being %s", item, langevin.PriorForms)
		}
		if _, twice := priors[name]; twice {
			return nil, invalid("priors %q: %s is given twice", text, name)
		}
		priors[name] = prior
	}
	return priors, nil
}

// joinPriors is the text from which parsePriors reads these priors; it is empty for none.
func joinPriors(priors map[string]langevin.Prior) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(priors)) {
		items = append(items, name+"="+priors[name].String())
	}
	return strings.Join(items, "/")
}
