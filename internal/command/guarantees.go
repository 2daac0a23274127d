package command

import (
	"fmt"
	"math"
	"os"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

// guaranteeFlags are the flags that choose the guarantees of answers.
type guaranteeFlags struct {
	level, inDistributionRate float64
	sets                      string
	perClass, allowEmpty      bool
	risk, riskConfidence      float64
	unscaled                  bool

	hasLevels, hasSets bool           // of the command; without these flags runs keep their defaults
	riskOf             *pflag.FlagSet // with --risk; nil if the command does not have it
}

// bindLevels binds the levels of commands that answer.
func (g *guaranteeFlags) bindLevels(f *pflag.FlagSet) {
	g.hasLevels = true
	f.Float64Var(&g.level, "level", 0.9, "probability that a prediction set contains the true class; fit, eval and ood score sets of 0.95")
	f.Float64Var(&g.inDistributionRate, "in-distribution-rate", 0.95, "fraction of images like the training images to report as in distribution")
	f.BoolVar(&g.unscaled, "unscaled", false, "give probabilities as averaged over the samples, not scaled to fit the calibration images")
}

// bindSets binds the rule of prediction sets.
func (g *guaranteeFlags) bindSets(f *pflag.FlagSet) {
	g.hasSets = true
	f.StringVar(&g.sets, "sets", string(evaluate.ThresholdSets), "how prediction sets are formed: threshold, the classes with a high enough probability;\n"+
		"aps, adaptive sets, larger for harder images; raps:lambda=0.01,kreg=5, adaptive sets without\nimprobable classes; aps:randomized")
	f.BoolVar(&g.perClass, "per-class", false, "use a threshold for each class: sets contain the true class with the same probability for the images of each\n"+
		"class, not only on average")
	f.BoolVar(&g.allowEmpty, "allow-empty", false, "keep empty prediction sets, instead of the most probable class")
}

// bind binds the rule of prediction sets and the certified risk.
func (g *guaranteeFlags) bind(f *pflag.FlagSet) {
	g.bindSets(f)
	g.riskOf = f
	f.Float64Var(&g.risk, "risk", 0, "maximum error rate among the images that are answered, such as 0.02; the others should be referred to a\n"+
		"person (default: no such decision; eval lists 0.01, 0.02 and 0.05)")
	f.Float64Var(&g.riskConfidence, "risk-confidence", evaluate.RiskConfidence, "probability that the error rate is at most --risk, over the calibration images")
}

// rule returns the rule of prediction sets.
func (g *guaranteeFlags) rule() (evaluate.SetRule, error) {
	rule, err := evaluate.ParseSetScore(g.sets)
	if err != nil {
		return rule, usage("pollen: --sets: %v", err)
	}
	rule.PerClass, rule.AllowEmpty = g.perClass, g.allowEmpty
	return rule, nil
}

// options returns the flags as options of a run.
func (g *guaranteeFlags) options() (options []bayes.Option, err error) {
	if g.hasSets {
		rule, err := g.rule()
		if err != nil {
			return nil, err
		}
		options = append(options, bayes.WithSetRule(rule))
	}
	if g.riskOf != nil {
		if g.riskOf.Changed("risk") && g.risk == 0 { // 0 is WithRisk's for none
			return nil, usage("pollen: --risk must be between 0 and 1, got 0; leave it out for no such decision")
		}
		if !(g.riskConfidence > 0 && g.riskConfidence < 1) { // 0 is the default of WithRisk
			return nil, usage("pollen: --risk-confidence must be between 0 and 1, got %v", g.riskConfidence)
		}
		if g.hasLevels && g.risk == 0 && g.riskConfidence != evaluate.RiskConfidence { // eval certifies without --risk, too
			return nil, usage("pollen: --risk-confidence applies with --risk only")
		}
		options = append(options, bayes.WithRisk(g.risk, g.riskConfidence))
	}
	if g.hasLevels {
		options = append(options, bayes.WithLevel(g.level), bayes.WithInDistributionRate(g.inDistributionRate))
		if g.unscaled {
			options = append(options, bayes.WithUnscaled())
		}
	}
	return options, nil
}

// remark reports which guarantees the answers of a run lack at these levels, why, and how to get
// them, and which guarantees are weaker than they seem.
func (g *guaranteeFlags) remark(run *bayes.Run, c *console) error {
	m, train := run.Manifest(), program(os.Executable())
	calibration, err := run.Calibration()
	if errors.As(err, new(*bayes.DamagedError)) {
		return nil // it was skipped, which was reported before
	}
	if os.IsNotExist(errors.Cause(err)) {
		how := fmt.Sprintf("hold out images with %[1]s fit --validation 0.1, or use others: %[1]s calibrate %[2]s --data DIR", train, run.Dir())
		if len(m.Parts) > 0 {
			how = train + " gather calibrates it when all parts are done, or with --copy, if images are held out"
		} else if finished, err := run.Finished(); err == nil && !finished {
			how = "it will be calibrated when it is finished, if images are held out"
		}
		c.remark("%s is not calibrated, so it has no prediction sets, detects nothing out of distribution, and certifies no risk: %s", run.Dir(), how)
		if g.risk > 0 {
			c.remark("%s: all images should be referred to a person", run.Dir())
		}
		return nil
	}
	if err != nil {
		return err
	}
	n := calibration.Examples
	if calibration.Nonconformity == nil {
		c.remark("%s has no in-distribution decisions: it was calibrated without a detector of strange images", run.Dir())
	}
	for _, missing := range []struct {
		flag  string
		level float64
		what  string
	}{{"level", g.level, "prediction sets"}, {"in-distribution-rate", g.inDistributionRate, "in-distribution decisions"}} {
		if calibration.Supports(missing.level) || missing.flag == "in-distribution-rate" && calibration.Nonconformity == nil {
			continue
		}
		required := evaluate.NeededExamples(missing.level)
		how := "or calibrate with more images"
		if share := fractionFor(required, m.Data.Size+n, config.DataOf(m).Group != ""); share < 0.5 {
			how += fmt.Sprintf(", such as %s fit --validation %g", train, share)
		}
		if best := math.Floor(100*float64(n)/float64(n+1)) / 100; calibration.Supports(best) {
			how = fmt.Sprintf("--%s %g, ", missing.flag, best) + how
		}
		c.remark("%s has no %s: --%s %g needs %d held-out images, got %d; use %s",
			run.Dir(), missing.what, missing.flag, missing.level, required, n, how)
	}
	if reason := calibration.AllClasses(g.level); reason != "" {
		c.remark("%s: %s", run.Dir(), reason)
	}
	if t := calibration.SelfTest; t != nil && !t.Passed() {
		c.remark("%s: images in distribution need not be like the training images: the run %v", run.Dir(), t)
	}
	sentences, err := g.sentences(run)
	for _, sentence := range sentences {
		c.remark("%s: %s", run.Dir(), sentence)
	}
	return err
}

// fractionFor returns the fraction of images, a multiple of 0.05, that holds out at least the
// required number. Grouped images are held out in whole groups, which can be fewer, so it adds a
// step.
func fractionFor(required, images int, grouped bool) float64 {
	steps := math.Ceil(20 * float64(required) / float64(images))
	if grouped {
		steps++
	}
	return steps / 20
}

// sentences describes the guarantees of --per-class and --risk: which classes have no threshold of
// their own, and which images are answered.
func (g *guaranteeFlags) sentences(run *bayes.Run) (sentences []string, err error) {
	calibration, err := run.Calibration()
	if os.IsNotExist(errors.Cause(err)) || errors.As(err, new(*bayes.DamagedError)) {
		if g.risk > 0 {
			sentences = append(sentences, "no risk is certified without a calibration: all images should be referred to a person")
		}
		return sentences, nil
	}
	if err != nil {
		return nil, err
	}
	if g.perClass && calibration.Supports(g.level) {
		rule, err := g.rule()
		if err != nil {
			return nil, err
		}
		sets, err := calibration.Sets(g.level, rule)
		if err != nil {
			return nil, err
		}
		if text := fallbackText(sets, run.Manifest().Data.ClassNames); text != "" {
			sentences = append(sentences, text)
		}
	}
	if g.risk > 0 {
		certificate, err := calibration.Certify(g.risk, g.riskConfidence)
		if err != nil {
			return nil, err
		}
		sentences = append(sentences, certificateText(certificate))
	}
	return sentences, nil
}

// fallbackText names the classes that have no threshold of their own, or returns "".
func fallbackText(sets *evaluate.Sets, names []string) string {
	return report.FallbackText(sets, func(class int) string { return quotedName(names[class]) })
}

// certificateText describes which images are answered.
func certificateText(c evaluate.Certificate) string {
	if !c.Certified {
		return fmt.Sprintf("no answers with at most %.4g %% errors can be certified with %.4g %% confidence: %s; all images should be referred to a person",
			100*c.Risk, 100*c.Confidence, c.Why())
	}
	return fmt.Sprintf("%v, certified with %.4g %% confidence: those with a confidence of at least %.4g before scaling; the others should be referred to a person",
		c, 100*c.Confidence, c.Threshold)
}
