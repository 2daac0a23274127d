package bayes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// Setting is a field of a Spec as text, as it appears in flags, configuration files and manifests.
// The table of settings is the only list of a Spec's fields: flags, JSON, comparisons of runs and
// the help are all made from it, so a new field needs only a row.
type Setting struct {
	// Name is the name of the flag and of the JSON member, such as "burn-in".
	Name string
	// Kind is the type of the value: "string", "int", "float" or "uint64".
	Kind string
	// Usage is the text of the help, one or two lines, with the default.
	Usage string

	everywhere bool              // it applies to every method; otherwise methodKind.applies decides
	get        func(s *Spec) any // returns nil if the field was left out
	set        func(s *Spec, text string) error
}

// The values of the setting "order".
const (
	shuffled  = "shuffled"
	symmetric = "symmetric"
)

// settings lists the settings in the order of the help, which is also the order of a manifest's
// JSON. get returns nil for a field that was left out, which JSON then omits. A run's manifest has
// the resolved Spec, in which no default is left out, so that a later version with other defaults
// still repeats the run.
var settings = []Setting{
	field("model", "network: a name from the list above, a network file, or an ONNX file (default lenet-small)", true,
		func(s *Spec) *string { return &s.Network }, unchanged[string]),
	field("cut", "value or node of an ONNX file that the head reads (default: what the last fully connected layer reads, or the output)", true,
		func(s *Spec) *string { return &s.Cut }, unchanged[string]),
	field("head", "network after the cut of an ONNX file: linear, mlp:WIDTH or mlp:WIDTH-WIDTH, or a network file\n(default linear)", true,
		func(s *Spec) *string { return &s.Head }, unchanged[string]),
	field("freeze", "weights of an ONNX file that are not sampled: all, none, or names of weights or layers, separated by commas\n(default all)", true,
		func(s *Spec) *string { return &s.Freeze }, unchanged[string]),
	field("input", "input of an ONNX file: imagenet, inception, none, bytes or caffe, or "+pretrained.InputForm+"\n"+
		"(default: by the file's metadata, or imagenet)", true,
		func(s *Spec) *string { return &s.Input }, unchanged[string]),
	number("subset", "number of examples to train on: the first ones, or evenly spaced ones if the data are sorted by class\n(default: all)", true,
		func(s *Spec) *int { return &s.Subset }),
	field("method", "optimizer, sampler or approximation, such as sghmc:friction=0.2; auto chooses a sampler by the data and --budget\n"+
		"(default: sghmc with 4 to 12 chains, a cycle and a warm start by momentum, as far as the other flags\n"+
		"allow; auto with a frozen ONNX file, adam with 4 chains if its weights are not frozen)", true,
		func(s *Spec) *Method { return &s.Method }, ParseMethod),
	field("schedule", "learning-rate schedule, such as cosine:0.1,0 (default by method and network, lower below 10000 examples for samplers)", true,
		func(s *Spec) *optimizers.Schedule { return &s.Schedule }, optimizers.ParseSchedule),
	number("batch", "minibatch size (default 100, or a tenth of a data set of fewer than 1000; full-batch samplers use all data)", true,
		func(s *Spec) *int { return &s.Batch }),
	number("epochs", "passes over the training data, burn-in included; for nuts, draws (default 8, or enough for 1000 steps if the\n"+
		"data are few; without --method 10, or 100 to 250 steps, as a pilot finds; 60 for distil, 2000 for full-batch samplers, 500 for nuts)", true,
		func(s *Spec) *int { return &s.Epochs }),
	field("budget", "for auto, instead of --epochs: how long the steps may take, such as 30m or 2h (default 10m)", false,
		func(s *Spec) *time.Duration { return &s.Budget }, parseBudget),
	field("start", "warm start: directory of a run; the chains begin at its last samples (default: fresh initial values)", true,
		func(s *Spec) *string { return &s.Start }, unchanged[string]),
	field(teacherSetting, "for distil: directory of the run whose predictions are learned", false,
		func(s *Spec) *string { return &s.Teacher }, unchanged[string]),
	field("warm-start", "optimizer that each chain begins with, such as adam: it is stopped by its loss on a fifth of the training images,\n"+
		"which are held out from it, and sampling begins from its best weights (default: momentum without\n--method, else none)", false,
		func(s *Spec) *optimizers.Optimizer { return &s.WarmStart }, parseWarmStart),
	field("warm-schedule", "learning-rate schedule of the warm start (default: by optimizer and network)", false,
		func(s *Spec) *optimizers.Schedule { return &s.WarmSchedule }, optimizers.ParseSchedule),
	number("warm-epochs", "maximum number of epochs of the warm start (default 2, 5 without --method, or enough for 1000 steps if\nthe data are few)", false,
		func(s *Spec) *int { return &s.WarmEpochs }),
	number("warm-patience", "epochs without a lower loss after which the warm start of a chain stops (default a fifth of --warm-epochs,\n"+
		"or enough for 200 steps without --method)", false,
		func(s *Spec) *int { return &s.WarmPatience }),
	field("augment", "augment training images at random: none, or any of "+augmentForm+";\n"+
		"samples then follow a distribution other than the posterior, see bayes.Augment (default none; without --method,\n"+
		"shifts by up to 1/14 of an image's side, which is 2 of 28 pixels, and from 2500 images on, flip if a pilot finds that it helps);\n"+
		"copies is for heads on a frozen network, the number of changed copies of each image, by default 8", true,
		func(s *Spec) **Augment { return &s.Augment }, pointer(parseAugment)),
	field("class-weights", "weights of classes in the loss: balanced, for the same total weight of each class, or by class, such as cat=2,dog=0.5;\n"+
		"probabilities are then calibrated for data with classes so weighted, see bayes.ClassWeights (default: all 1)", true,
		func(s *Spec) *ClassWeights { return &s.ClassWeights }, parseClassWeights),
	field("burn-in", "epochs before the first sample, in each cycle if there are cycles (default 3/8 of the epochs, or 4/5 of\n"+
		"a cycle; 9/10 of a cycle without --method)", false,
		func(s *Spec) **int { return &s.BurnIn }, pointer(strconv.Atoi)),
	number("samples", "minimum number of samples per chain, evenly spaced or drawn at the end; for mc-dropout, forward passes\n"+
		"(default 10; 32 of all chains and at least 4 of each without --method; 100 of all chains for auto)", false,
		func(s *Spec) *int { return &s.Samples }),
	number("burn-in-steps", "burn-in in steps, instead of --burn-in in epochs (default: set by --burn-in)", false,
		func(s *Spec) *int { return &s.BurnInSteps }),
	number("thinning", "steps from one sample to the next, instead of --samples (default: set by --samples)", false,
		func(s *Spec) *int { return &s.Thinning }),
	number("keep", "maximum number of samples per chain on disk: when there are more, every other one is removed and the interval\n"+
		"between samples doubles (default: all)", false, func(s *Spec) *int { return &s.Keep }),
	field("weights", "weights of samples in averages: equal, or step-size for weights proportional to the step size (default\n"+
		"step-size; equal with --cycles, because the last samples of a cycle would have almost no weight)", false,
		func(s *Spec) *Weighting { return &s.Weights }, unchanged[Weighting]),
	number("cycles", "number of cycles of cyclical sampling: each explores without noise during its burn-in, then samples\n"+
		"(default: 1 without --method, else none)", false,
		func(s *Spec) *int { return &s.Cycles }),
	number("anchor", "control variates: epochs between two gradients over all data; less gradient noise for twice the work (default: none)", false,
		func(s *Spec) *int { return &s.Anchor }),
	field("order", "order of minibatches: "+shuffled+" (again in each epoch), or "+symmetric+" (every second epoch is the\n"+
		"reverse of the one before, which cools short epochs and heats where m sqrt(lambda h) is 1.6 to 5, with m minibatches\n"+
		"per epoch, curvature lambda and step size h) (default "+shuffled+")", false,
		func(s *Spec) *bool { return &s.Symmetric }, parseOrder),
	number("chains", "number of Markov chains, with different initial values (default 4 to 12 without --method,\n5 for ensemble, 4 for auto, else 1)", true,
		func(s *Spec) *int { return &s.Chains }),
	field("first-chain", "number of the first chain, to sample some chains of a larger run with identical results (default 0)", true,
		func(s *Spec) *int { return &s.FirstChain }, strconv.Atoi),
	field("prior", "prior of each parameter: "+langevin.PriorForms+";\n"+
		"start is a Gaussian around the weights of an ONNX file (default gaussian:0.316;\n"+
		"gaussian:0.6 without --method; fan-in:2 for auto; for weights of an ONNX file that are not frozen\n"+
		"start:0.002 if they are sampled, else start:0.01)", false,
		func(s *Spec) **langevin.Prior { return &s.Prior }, pointer(langevin.ParsePrior)),
	field("priors", "priors of single layers or parameters, which override --prior, such as conv1=gaussian:0.3/linear2=fan-in:1\n(default: none)", false,
		func(s *Spec) *map[string]langevin.Prior { return &s.Priors }, parsePriors),
	field("temperature", "temperature of the posterior; below 1 gives a cold posterior (default 1)", false,
		func(s *Spec) **float64 { return &s.Temperature }, pointer(parseNumber)),
	field("temperatures", "replica exchange: rising temperatures such as 1,1.02,1.04, with a replica of each chain at each; the first one yields\n"+
		"the samples; for frequent swaps, neighbours should differ by a relative 2/sqrt(number of weights) (default: none)", false,
		func(s *Spec) *[]float64 { return &s.Temperatures }, splitNumbers),
	field("seed", "random seed of initial values, minibatches and noise (default 1)", true,
		func(s *Spec) *uint64 { return &s.Seed }, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }),
}

// field returns the setting of the field of a Spec to which of returns a pointer.
func field[T any](name, usage string, everywhere bool, of func(s *Spec) *T, parse func(text string) (T, error)) Setting {
	kind := "string"
	switch any(*new(T)).(type) {
	case int, *int:
		kind = "int"
	case *float64:
		kind = "float"
	case uint64:
		kind = "uint64"
	}
	return Setting{name, kind, usage, everywhere,
		func(s *Spec) any { return valueOf(of(s)) },
		func(s *Spec, text string) (err error) { *of(s), err = parse(text); return err }}
}

// number returns a setting that is a count of at least 1; the field is 0 if it was left out.
func number(name, usage string, everywhere bool, of func(s *Spec) *int) Setting {
	return field(name, usage, everywhere, of, func(text string) (int, error) {
		v, err := strconv.Atoi(text)
		if err == nil && v < 1 {
			err = invalid("%s must be at least 1, got %d", name, v)
		}
		return v, err
	})
}

// valueOf returns the value of the field that a pointer points to, as in JSON: a number or a text,
// or nil if the field was left out.
func valueOf(field any) any {
	v := reflect.ValueOf(field).Elem()
	if v.IsZero() && v.Kind() != reflect.Uint64 { // a seed of 0 is a seed
		return nil
	}
	switch f := field.(type) {
	case *Method:
		return MethodText(*f)
	case *optimizers.Optimizer:
		return MethodText(*f)
	case *map[string]langevin.Prior:
		return orNil(joinPriors(*f))
	case *[]float64:
		return orNil(joinNumbers(*f))
	case *bool:
		return symmetric
	}
	value := reflect.Indirect(v).Interface()
	if text, ok := value.(fmt.Stringer); ok {
		return orNil(text.String())
	}
	return value
}

// pointer returns a parser of fields that are nil if they were left out.
func pointer[T any](parse func(text string) (T, error)) func(text string) (*T, error) {
	return func(text string) (*T, error) {
		value, err := parse(text)
		return &value, err
	}
}

// unchanged is the parser of fields that are texts.
func unchanged[T ~string](text string) (T, error) { return T(text), nil }

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func parseBudget(text string) (time.Duration, error) {
	budget, err := time.ParseDuration(text)
	if err != nil || budget <= 0 {
		return 0, invalid("budget must be a time such as 10m, got %q", text)
	}
	return budget, nil
}

func parseOrder(text string) (isSymmetric bool, err error) {
	if text != symmetric && text != shuffled {
		return false, invalid("order must be %s or %s, got %q", shuffled, symmetric, text)
	}
	return text == symmetric, nil
}

// Settings returns the fields of a Spec as text.
func Settings() []Setting { return settings }

// Set sets the field with a setting's name from a text, as in Set("epochs", "20"). An unknown name
// and a text that cannot be read are an InvalidError, and leave the Spec as it was.
func (s *Spec) Set(name, text string) error {
	for _, setting := range settings {
		if setting.Name == name {
			changed := *s
			err := setting.parse(&changed, text)
			if err == nil {
				*s = changed
			}
			return err
		}
	}
	var names []string
	for _, setting := range settings {
		names = append(names, setting.Name)
	}
	return invalid("no setting %q; %s", name, nearest.Among(name, names))
}

// Texts returns the settings that were not left out, by name.
func (s Spec) Texts() map[string]string {
	texts := map[string]string{}
	for _, setting := range settings {
		if value := setting.get(&s); value != nil {
			texts[setting.Name] = fmt.Sprint(value)
		}
	}
	return texts
}

// difference returns the first setting that differs between two specifications, with both texts. It
// skips the settings named in apart. It compares texts, so that pointers to equal values do not
// differ.
func (s Spec) difference(other Spec, apart ...string) (name, ours, theirs string) {
	texts, others := s.Texts(), other.Texts()
	for _, setting := range settings {
		if !slices.Contains(apart, setting.Name) && texts[setting.Name] != others[setting.Name] {
			return setting.Name, texts[setting.Name], others[setting.Name]
		}
	}
	return "", "", ""
}

// parse sets the field. Its errors name the setting and are InvalidError, whatever strconv or the
// setter returned.
func (t Setting) parse(s *Spec, text string) error {
	if text == "" { // for example of an unset variable, which must not mean the default
		return invalid("%s must not be empty: leave it out for the default", t.Name)
	}
	err := t.set(s, text)
	var number *strconv.NumError
	switch {
	case err == nil, errors.As(err, new(*InvalidError)):
		return err
	case errors.As(err, &number):
		kinds := map[string]string{"int": "an integer", "float": "a number", "uint64": "an integer of at least 0"}
		return invalid("%s must be %s, got %q", t.Name, kinds[t.Kind], text)
	}
	// Such as "langevin: prior must be ...", which names the setting.
	if _, text, cut := strings.Cut(err.Error(), ": "); cut && (strings.HasPrefix(text, t.Name+" ") || strings.HasPrefix(text, t.Name+":")) {
		return &InvalidError{err}
	}
	return &InvalidError{errors.WithMessage(err, "pollen: "+t.Name)}
}

// MarshalJSON returns an object with a member for each setting that was not left out. It is written
// by hand because encoding/json would sort the members of a map, and readers expect the order of
// the help.
func (s Spec) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for _, setting := range settings {
		value := setting.get(&s)
		if value == nil {
			continue
		}
		content, err := json.Marshal(value)
		if err != nil {
			return nil, errors.Wrapf(err, "pollen: %s", setting.Name)
		}
		if text.Len() > 1 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, "%q:%s", setting.Name, content)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes. Other members are errors. Numbers are parsed from
// their JSON text, so that a seed of 64 bits loses no digit in a float64.
func (s *Spec) UnmarshalJSON(content []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(content, &members); err != nil {
		return errors.Wrap(err, "pollen: specification")
	}
	*s = Spec{}
	for _, setting := range settings {
		raw, given := members[setting.Name]
		if !given {
			continue
		}
		delete(members, setting.Name)
		text := string(raw)
		if setting.Kind == "string" {
			if raw[0] != '"' {
				return invalid("%s must be a string, got %s", setting.Name, raw)
			}
			if err := json.Unmarshal(raw, &text); err != nil {
				return errors.Wrapf(err, "pollen: specification: %s", setting.Name)
			}
		}
		if err := setting.parse(s, text); err != nil {
			return err
		}
	}
	// The remaining members are unknown: Set returns the error that lists the known names.
	for name := range members {
		return s.Set(name, "")
	}
	return nil
}

// orNil turns an empty text into "left out".
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func joinNumbers(values []float64) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strings.Join(texts, ",")
}

func splitNumbers(text string) ([]float64, error) {
	var values []float64
	for _, item := range strings.Split(text, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(item), 64)
		if err != nil {
			return nil, invalid("temperatures %q: %q is not a number", text, item)
		}
		values = append(values, v)
	}
	return values, nil
}

// parsePriors reads the priors of some layers, "conv1=gaussian:0.3/linear2.bias=flat". The
// separator is a slash because priors have commas and colons.
func parsePriors(text string) (map[string]langevin.Prior, error) {
	priors := map[string]langevin.Prior{}
	for _, item := range strings.Split(text, "/") {
		name, family, _ := strings.Cut(item, "=")
		prior, err := langevin.ParsePrior(strings.TrimSpace(family))
		if name = strings.TrimSpace(name); err != nil || name == "" {
			return nil, invalid("priors must be LAYER=PRIOR, with / between layers, got %q; PRIOR is %s", item, langevin.PriorForms)
		}
		if _, twice := priors[name]; twice {
			return nil, invalid("priors %q: %s is given twice", text, name)
		}
		priors[name] = prior
	}
	return priors, nil
}

// joinPriors returns the text that parsePriors reads, sorted by name, so that equal maps have equal
// texts; it is empty without priors.
func joinPriors(priors map[string]langevin.Prior) string {
	var items []string
	for _, name := range slices.Sorted(maps.Keys(priors)) {
		items = append(items, name+"="+priors[name].String())
	}
	return strings.Join(items, "/")
}
