package config

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// otherNames lists flags of other programs: their names, the flag of ours that does the same, which
// need not exist in each command, and a remark on it.
var otherNames = []struct{ names, flag, remark string }{
	{"lr learning-rate learningrate lr0 step-size rate", "schedule", "the learning rate is set by --schedule, as in --schedule constant:0.01 or cosine:0.1,0"},
	{"scheduler lr-scheduler lr-schedule", "schedule", "learning rates are set by --schedule"},
	{"warmup warmup-steps warmup-epochs", "schedule", "a rising rate is a part of --schedule, as in --schedule warmup:100,cosine:0.1,0"},
	{"optimizer optim opt algorithm sampler", "method", "optimizers and samplers are set by --method, as in --method adam"},
	{"batch-size batchsize bs minibatch minibatch-size mini-batch", "batch", "the size of a minibatch is set by --batch"},
	{"weight-decay wd l2 lambda", "prior", "a Gaussian prior acts as weight decay, see --prior; --method adamw:weight-decay=0.01 has its own"},
	{"momentum", "method", "it is a part of the method, see --method momentum or --method sghmc"},
	{"dropout", "method", "see --method mc-dropout"},
	{"ensemble num-models n-models members", "chains", "see --method ensemble; --chains sets the number of networks"},
	{"num-chains n-chains", "chains", "the number of chains is set by --chains"},
	{"num-samples n-samples draws", "samples", "the number of samples is set by --samples"},
	{"burnin warm-up", "burn-in", "see --burn-in"},
	{"epoch num-epochs n-epochs max-epochs iterations num-iterations steps max-steps", "epochs", "the length of a run is set by --epochs"},
	{"output output-dir out out-dir save save-dir logdir log-dir run-dir project name", "folder", "the directory of a run is set by --folder"},
	{"output output-file save", "out", "the file for the results is set by --out"},
	{"arch architecture network net backbone model-name weights-file pretrained", "model", "the network is set by --model"},
	{"dataset data-dir data-path train train-dir input images", "data", "the images are set by --data"},
	{"val val-split validation-split val-size valid", "validation", "the fraction of images held out for calibration is set by --validation"},
	{"test-split test-size", "test", "the fraction of images held out for scores is set by --test"},
	{"image-size img-size imgsz img input-size resolution", "size", "the size of images is set by --size"},
	{"augmentation augmentations transform transforms", "augment", "random changes of images are set by --augment"},
	{"gpu gpus cuda no-cuda cpu", "device", "the device is set by --device, as in --device cpu or cuda:0"},
	{"workers num-workers jobs num-threads", "threads", "the number of threads is set by --threads"},
	{"patience early-stopping", "warm-patience", "see --warm-patience"},
	{"random-seed random-state manual-seed", "seed", "the seed is set by --seed"},
	{"checkpoint resume-from continue", "resume", "a run that was stopped continues by --resume"},
	{"amp fp16 bf16 half mixed-precision dtype", "precision", "the precision on GPUs is set by --precision"},
}

// hint returns the flag to use instead of an unknown one, as the end of a sentence; "" if there is
// none among the command's flags.
func hint(flags *pflag.FlagSet, unknown string) string {
	unknown = strings.ReplaceAll(strings.ToLower(unknown), "_", "-")
	if flags.Lookup(unknown) != nil {
		return "; it is called --" + unknown
	}
	remarks, names := map[string]string{}, []string{}
	for _, o := range otherNames {
		for _, name := range strings.Fields(o.names) {
			if flags.Lookup(o.flag) != nil && remarks[name] == "" {
				remarks[name], names = o.remark, append(names, name)
			}
		}
	}
	if remark := remarks[unknown]; remark != "" {
		return "; " + remark
	}
	var own []string
	flags.VisitAll(func(f *pflag.Flag) { own = append(own, f.Name) })
	if name := nearest.Name(unknown, own); name != "" {
		return "; did you mean --" + name + "?"
	}
	if name := nearest.Name(unknown, names); name != "" {
		return "; " + remarks[name]
	}
	return ""
}
