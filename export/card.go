package export

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/onnx"
)

// Card writes a new directory with a run in all formats and a README.md, a model card: training
// data, method, convergence, scores on test images with 95 % intervals, and limits of use. It
// returns remarks, which the card also has. Formats that the run cannot have are left out, with a
// remark: ONNX with Monte Carlo dropout or too many weights, and ArviZ without draws. test must
// have labels; the card repeats its Remarks. If it is nil, the card has neither scores nor
// predictions. at is the time of TensorBoard's events.
func Card(ctx context.Context, run *bayes.Run, test *datasets.Dataset, dir string, o ONNXOptions, at time.Time) (remarks []string, err error) {
	err = intoNew(dir, func(dir string) error {
		c := &card{dir: dir, run: run, m: run.Manifest(), o: o}
		if err := c.write(ctx, test, at); err != nil {
			return err
		}
		text, err := c.text(ctx)
		if err != nil {
			return err
		}
		remarks = c.remarks
		return errors.Wrap(os.WriteFile(filepath.Join(dir, "README.md"), []byte(text), 0o644), "export: card")
	})
	return remarks, err
}

// The files of a card besides its README.md.
const (
	cardONNX        = "model.onnx"
	cardArviZ       = "posterior.zarr"
	cardTorch       = "posterior.safetensors"
	cardNPZ         = "predictions.npz"
	cardTensorBoard = "tensorboard"
)

// card writes the directory of a model card.
type card struct {
	dir     string
	run     *bayes.Run
	m       bayes.Manifest
	o       ONNXOptions
	test    *predicted
	answers []bayes.Answer
	written map[string]bool // the files that the run can have
	remarks []string
}

// write predicts the test images and writes all files except README.md.
func (c *card) write(ctx context.Context, test *datasets.Dataset, at time.Time) (err error) {
	if test != nil && test.Labels == nil {
		return invalid("card: %s has no labels, with which the run is scored", test.Name)
	}
	c.written = map[string]bool{cardTorch: true, cardTensorBoard: true}
	if test == nil {
		c.test, err = unpredicted(c.run)
		c.remarks = append(c.remarks, "the card has no scores, because there are no test images")
	} else {
		err = c.predict(ctx, test)
	}
	if err != nil {
		return err
	}
	if err := c.writeModel(ctx); err != nil {
		return err
	}
	if err := c.writeDraws(); err != nil {
		return err
	}
	if err := Torch(c.run, filepath.Join(c.dir, cardTorch)); err != nil {
		return err
	}
	return TensorBoard(c.run, filepath.Join(c.dir, cardTensorBoard), at)
}

// predict predicts the test images and writes the predictions.
func (c *card) predict(ctx context.Context, test *datasets.Dataset) (err error) {
	if c.test, err = predict(ctx, c.run, test); err != nil {
		return err
	}
	if c.answers, err = c.run.Answers(c.test.average, test.Files); err != nil {
		return err
	}
	c.written[cardNPZ] = true
	return c.test.writeNPZ(filepath.Join(c.dir, cardNPZ), c.answers, c.m.Data.ClassNames)
}

// writeModel writes the ONNX file if the run can have one.
func (c *card) writeModel(ctx context.Context) error {
	if refused := onnxRefusal(c.run, c.test.passes); refused != nil {
		c.leaveOut("no file for ONNX Runtime", refused)
		return nil
	}
	more, err := ONNX(ctx, c.run, filepath.Join(c.dir, cardONNX), c.o)
	if errors.As(err, new(*onnx.UnwritableError)) {
		c.leaveOut("no file for ONNX Runtime", err)
		return nil
	}
	c.remarks = append(c.remarks, more...)
	c.written[cardONNX] = err == nil
	return err
}

// writeDraws writes the groups for ArviZ if the run has draws.
func (c *card) writeDraws() error {
	if refused := arvizRefusal(c.run, c.test.passes); refused != nil {
		c.leaveOut("no groups for ArviZ", refused)
		return nil
	}
	more, err := writeArviZ(c.run, c.test, filepath.Join(c.dir, cardArviZ))
	c.remarks = append(c.remarks, more...)
	c.written[cardArviZ] = err == nil
	return err
}

// leaveOut remarks that a file is left out.
func (c *card) leaveOut(what string, reason error) {
	text := reason.Error()
	for _, prefix := range []string{"export: ", "arviz: ", "onnx: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	c.remarks = append(c.remarks, fmt.Sprintf("the card has %s: %s", what, text))
}
