package command

import (
	"context"
	"fmt"
	"maps"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/config"
)

// distilFlags are the flags of distil.
type distilFlags struct {
	settings             config.Settings
	dir, unlabelled, out string
	method               bayes.Distillation
	estimate             bool
}

func distilCommand(c *console) *cobra.Command {
	d := distilFlags{method: usualDistillation()}
	command := &cobra.Command{
		Use: "distil RUN", Short: "Train a network that predicts what all samples of a run predict",
		Long: "Trains a network to predict what a run does by averaging its samples: the probabilities, and how much the samples disagree.\n" +
			"Its output is a Dirichlet distribution over probabilities, from which entropy, expected entropy and mutual information\n" +
			"follow. The result is a run with a calibration of its own, which every command accepts. A prediction costs one network\n" +
			"instead of one for each sample. The result is not a posterior: it has no R-hat and no temperature.\n\n" +
			"The network learns from the run's training images, from changed copies of them (warped, blended with each other),\n" +
			"from drawn shapes and from the images of --data. The run predicts each of these; labels are not used. At the end,\n" +
			"both are compared on the test images and on out-of-distribution images. pollen fit --resume continues an\n" +
			"interrupted run.",
		Example: "  pollen distil runs/flowers\n  pollen distil runs/flowers --data unlabelled-photos --out weeds\n" +
			"  pollen distil runs/digits --model mlp-100 --epochs 20",
		Args: requireRun,
		RunE: func(command *cobra.Command, arguments []string) error {
			return d.run(command.Context(), arguments[0], command.Flag("networks"), c)
		},
	}
	f := command.Flags()
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	d.settings.Bind(all)
	for _, name := range []string{"model", "epochs", "batch", "schedule", "start", "seed", "data-folder", "device", "threads", "precision"} {
		f.AddFlag(all.Lookup(name))
	}
	f.Lookup("model").Usage = "network to train: a name of pollen fit --help or a network file (default: that of the run)"
	f.IntVar(&d.method.Copies, "copies", d.method.Copies, "copies of the images, of which all but the first are changed; the teacher predicts each once")
	f.IntVar(&d.method.Networks, "networks", 1, "divide RUN's samples among N networks like its own, each of which starts at the mean of one chain's samples.\n"+
		"More are closer to RUN, and slower. 0 trains one network from random values; --model and --start imply 0")
	f.Float64Var(&d.method.PrecisionWeight, "precision-weight", d.method.PrecisionWeight, "weight of the spread in the loss")
	f.StringVar(&d.unlabelled, "data", "", "more images to learn from, whose labels are not used: a file or a directory (default: none)")
	f.StringVar(&d.out, "out", "", "out-of-distribution data on which to compare with the teacher, in addition to strange images: a name, a directory\n"+
		"or a file")
	f.BoolVar(&d.estimate, "estimate", false, "time a few steps and predictions of RUN, print the estimated time and memory, and exit")
	f.StringVar(&d.dir, "folder", "", "run directory, new or empty (default runs/distil-1, runs/distil-2, ...)")
	return command
}

// usualDistillation returns the method with its usual attributes.
func usualDistillation() bayes.Distillation {
	method, err := bayes.ParseMethod("distil")
	if err != nil {
		panic(err) // it is registered
	}
	return method.(bayes.Distillation)
}

func (d *distilFlags) run(ctx context.Context, teacher string, networks *pflag.Flag, c *console) error {
	m, err := bayes.ReadManifest(teacher)
	if err != nil {
		return err
	}
	if d.settings.Text["model"] != "" || d.settings.Text["start"] != "" {
		if networks.Changed && d.method.Networks > 0 {
			return usage("pollen: distil: --model and --start do not apply with --networks, which are like the network of %s and start at its chains", teacher)
		}
		d.method.Networks = 0
	}
	if m.Model != nil && d.settings.Text["model"] == "" {
		return usage("pollen: distil: %s has the network of an ONNX file, which cannot be distilled into: name another one with --model", teacher)
	}
	dir := d.dir
	if !d.estimate {
		if dir, err = newRunDir(d.dir, "distil"); err != nil {
			return err
		}
	}
	p, err := d.prepare(ctx, teacher, *m, c)
	if err != nil {
		return err
	}
	defer p.device.Close()
	unlabelled, err := unlabelledImages(ctx, *m, d.unlabelled, c)
	if err != nil {
		return err
	}
	if d.estimate {
		return p.estimate(ctx, c, bayes.WithUnlabelled(unlabelled))
	}
	others, err := outImages(ctx, *m, d.outPlace(), d.settings.Data.Dir, c)
	if err != nil {
		return err
	}
	if err := p.remarkTeacher(ctx, teacher, c); err != nil {
		return err
	}
	return p.fit(ctx, dir, others, c, bayes.WithUnlabelled(unlabelled))
}

// remarkTeacher remarks on a teacher that is not good enough for predictions, since the distilled
// network will not be better.
func (p prepared) remarkTeacher(ctx context.Context, teacher string, c *console) error {
	if p.data.Test == nil {
		return nil
	}
	run, err := bayes.Open(teacher, bayes.WithDevice(p.device), bayes.WithObserver(c.observer("teacher")), keepFeatures())
	if err != nil {
		return err
	}
	scored := []scoredRun{{name: teacher, run: run}}
	if err := assess(ctx, scored, p.data.Test, nil, c); err != nil {
		return err
	}
	j, err := judge(run, scored[0].assessment, nil, p.data.Test)
	if err != nil || !j.poor {
		return err
	}
	text := fmt.Sprintf("%s, which is to be distilled, is %s. What is distilled from it is no better.", teacher, j.verdict)
	if j.command != "" {
		text += fmt.Sprintf(" To improve it first: %s %s", program(os.Executable()), j.command)
	}
	c.remark("%s", text)
	return nil
}

// prepare fills in the settings and the data of the teacher.
func (d *distilFlags) prepare(ctx context.Context, teacher string, m bayes.Manifest, c *console) (prepared, error) {
	s := &d.settings
	data := config.DataOf(m).In(s.Data.Dir)
	if d.out != "" {
		if err := config.Check("out", d.out, data.Dir); err != nil {
			return prepared{}, err
		}
	}
	s.Data = data
	s.Text["method"], s.Text["teacher"] = bayes.MethodText(d.method), teacher
	texts := m.Spec.Texts()
	for _, name := range []string{"model", "subset"} {
		if text, given := texts[name]; given && s.Text[name] == "" {
			s.Text[name] = text
		}
	}
	p, err := prepare(ctx, s, c)
	if err != nil {
		return p, err
	}
	run, err := bayes.Open(teacher)
	if err != nil {
		return p, err
	}
	remarkHeldOut(teacher, run, data, p.data, c)
	maps.Copy(p.notes, map[string]string{unlabelledNote: config.Absolute(d.unlabelled), outNote: d.outPlace()})
	maps.DeleteFunc(p.notes, emptyNote)
	return p, nil
}

// outPlace returns the name of the out-of-distribution data, or their absolute path.
func (d *distilFlags) outPlace() string {
	if d.out == "" {
		return ""
	}
	return (&config.Data{Name: d.out}).Place()
}
