package diagnostics

import (
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
)

// StepConvention states what a learning rate multiplies. With the potential U of N examples,
// without weight decay, and a batch of n:
//
//	convention    loss              drift of a step       step size h
//	mean-loss     U/N               rate grad loss        rate/N
//	sum-loss      U                 rate grad loss        rate
//	batch-sum     (n/N) U           rate grad loss        rate n/N
//	welling-teh   U                 rate/2 grad loss      rate/2
type StepConvention string

// The conventions. MeanLoss is usual in deep learning, SumLoss in libraries of samplers, WellingTeh
// in their paper of 2011.
const (
	MeanLoss   StepConvention = "mean-loss"
	SumLoss    StepConvention = "sum-loss"
	BatchSum   StepConvention = "batch-sum"
	WellingTeh StepConvention = "welling-teh"
)

// StepConventions returns all conventions.
func StepConventions() []StepConvention {
	return []StepConvention{MeanLoss, SumLoss, BatchSum, WellingTeh}
}

// Audit is the step of a program for stochastic gradient Langevin dynamics,
//
//	theta <- theta - m (grad loss + WeightDecay theta) + Noise xi,    xi ~ N(0, 1),
//	m = Rate, or Rate/2 with WellingTeh
//
// in the program's own convention. The program samples from exp(-U/T), with the T of Temperature
// and the prior of Prior. With a preconditioner G, Noise is the value where G = 1. The other
// methods require settings that Validate accepts.
type Audit struct {
	Rate        float64 // learning rate, or epsilon
	Noise       float64 // standard deviation of the noise that a step adds to each parameter
	DataSize    int     // N
	BatchSize   int     // n, with BatchSum only
	Convention  StepConvention
	WeightDecay float64 // factor of theta next to the gradient of the loss; 0 where the prior is in the loss
}

// Validate reports settings that are out of range, a batch size where it has no effect, and values
// so extreme that the temperature is not finite.
func (a Audit) Validate() error {
	switch {
	case !slices.Contains(StepConventions(), a.Convention):
		return errors.Errorf("diagnostics: audit: the convention must be one of %q, got %q", StepConventions(), a.Convention)
	case !(a.Rate > 0 && a.Rate < math.Inf(1)):
		return errors.Errorf("diagnostics: audit: Rate must be positive, got %v", a.Rate)
	case !(a.Noise >= 0 && a.Noise < math.Inf(1)):
		return errors.Errorf("diagnostics: audit: Noise must be finite and at least 0, got %v", a.Noise)
	case !(a.WeightDecay >= 0 && a.WeightDecay < math.Inf(1)):
		return errors.Errorf("diagnostics: audit: WeightDecay must be finite and at least 0, got %v", a.WeightDecay)
	case a.DataSize < 1:
		return errors.Errorf("diagnostics: audit: DataSize must be at least 1, got %d", a.DataSize)
	case a.Convention != BatchSum && a.BatchSize != 0:
		return errors.Errorf("diagnostics: audit: BatchSize must be 0 with the convention %q, where it has no effect, got %d", a.Convention, a.BatchSize)
	case a.Convention == BatchSum && (a.BatchSize < 1 || a.BatchSize > a.DataSize):
		return errors.Errorf("diagnostics: audit: BatchSize must be 1 to %d with the convention %q, got %d", a.DataSize, a.Convention, a.BatchSize)
	case math.IsNaN(a.Temperature()) || math.IsInf(a.Temperature(), 0):
		return errors.Errorf("diagnostics: audit: the temperature must be finite, got %v from step size %v and noise %v",
			a.Temperature(), a.StepSize(), a.Noise)
	}
	return nil
}

// lossFactor returns c of loss = c U.
func (a Audit) lossFactor() float64 {
	switch a.Convention {
	case MeanLoss:
		return 1 / float64(a.DataSize)
	case BatchSum:
		return float64(a.BatchSize) / float64(a.DataSize)
	default:
		return 1
	}
}

// StepSize returns h, which multiplies the gradient of U.
func (a Audit) StepSize() float64 {
	if a.Convention == WellingTeh {
		return a.Rate / 2
	}
	return a.Rate * a.lossFactor()
}

// Temperature returns T = Noise^2 / (2 h), since noise has the variance 2 h T; with MeanLoss it is
// N Noise^2 / (2 Rate). It leaves out the noise of minibatches, which adds heat.
func (a Audit) Temperature() float64 { return a.Noise * a.Noise / (2 * a.StepSize()) }

// NoiseFor returns the Noise that a temperature requires: sqrt(2 h T).
func (a Audit) NoiseFor(temperature float64) float64 {
	return langevin.NoiseScale(a.StepSize(), temperature, 1)
}

// Prior returns the prior that weight decay implies: N(0, s^2) with s^2 = c / WeightDecay where the
// loss is c U, which is 1/(N WeightDecay) with MeanLoss. It is flat without weight decay. At
// temperature T the chain behaves as if s^2 were T times that.
func (a Audit) Prior() langevin.Prior {
	if a.WeightDecay == 0 {
		return langevin.Flat()
	}
	return langevin.Gaussian(math.Sqrt(a.lossFactor() / a.WeightDecay))
}

// PublishedSetting is the setting of a public program.
type PublishedSetting struct {
	Code     string // its author, and the year where it matters
	Source   string // where the numbers are
	Settings Audit
}

// PublishedSettings returns the settings of public programs for stochastic gradient Langevin
// dynamics, taken from their source code.
func PublishedSettings() []PublishedSetting {
	return []PublishedSetting{
		{"pSGLD's authors (2016)", "github.com/ChunyuanLI/pSGLD: SGLD_RMSprop.m, test_FNN_mnist.m: noise sqrt(2 rate)/N, for MNIST",
			Audit{Rate: 5e-4, Noise: math.Sqrt(2*5e-4) / 60000, DataSize: 60000, Convention: MeanLoss, WeightDecay: 1. / 60000}},
		{"cSG-MCMC's authors (2020)", "github.com/ruqizhang/csgmcmc: cifar_csgmcmc.py: noise sqrt(2 rate temperature/N), temperature 1/N, for CIFAR-10",
			Audit{Rate: 0.5, Noise: math.Sqrt(2 * 0.5 * (1. / 50000) / 50000), DataSize: 50000, Convention: MeanLoss, WeightDecay: 5e-4}},
		{"henripal/sgld to 2018", "github.com/henripal/sgld: sgld_optimizer.py before 60bd564, mnist_labnotebook.ipynb: noise rate^1.5, for MNIST",
			Audit{Rate: 5e-4, Noise: math.Pow(5e-4, 1.5), DataSize: 60000, Convention: MeanLoss}},
		{"henripal/sgld from 2019", "github.com/henripal/sgld: sgld_optimizer.py since 60bd564, mnist_labnotebook.ipynb: noise sqrt(rate), for MNIST",
			Audit{Rate: 5e-4, Noise: math.Sqrt(5e-4), DataSize: 60000, Convention: MeanLoss}},
		{"torch-uncertainty (2026)", "github.com/ENSTA-U2IS-AI/torch-uncertainty: optim/sgld.py, mnist/configs/lenet/sgld.yaml: noise sqrt(2 rate)/100, for MNIST",
			Audit{Rate: 1e-2, Noise: math.Sqrt(2*1e-2) * 1e-2, DataSize: 60000, Convention: MeanLoss, WeightDecay: 1e-5}},
		{"posteriors (2025)", "github.com/normal-computing/posteriors: sgmcmc/sgld.py, README.md: noise sqrt(2 rate/N), for MNIST; any rate, here 0.001",
			Audit{Rate: 1e-3, Noise: math.Sqrt(2 * 1e-3 / 60000), DataSize: 60000, Convention: MeanLoss, WeightDecay: 1. / 60000}},
		{"bjlkeng/sandbox (2024)", "github.com/bjlkeng/sandbox: normal_mixture.ipynb: noise sqrt(epsilon), for 100 numbers; the priors are in the loss",
			Audit{Rate: 0.01, Noise: math.Sqrt(0.01), DataSize: 100, Convention: WellingTeh}},
	}
}

// Verdict states in a sentence what the settings sample. It ignores differences of a hundredth,
// because settings are often rounded.
func (a Audit) Verdict() string {
	temperature, prior := a.Temperature(), a.Prior()
	switch {
	case temperature == 0:
		return "Without noise this is an optimizer: it samples nothing."
	case math.Abs(temperature-1) < 0.01:
		return "This samples the posterior, up to the error of the step size and the noise of minibatches."
	}
	sentence := fmt.Sprintf("This samples a posterior in which each example counts %.5g times", 1/temperature)
	if prior != langevin.Flat() {
		sentence += fmt.Sprintf(" and the prior's standard deviation is %.4g", prior.Scale*math.Sqrt(temperature))
	}
	if temperature < 1 {
		return sentence + ": it is too cold, more certain than the data allow."
	}
	return sentence + ": it is too hot, less certain than the data allow."
}
