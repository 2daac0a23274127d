package serve

import (
	"github.com/pollen-ml/pollen/evaluate"
)

// runInfo is the JSON of GET /run.
type runInfo struct {
	Name       string   `json:"name" doc:"The name of the model."`
	Version    string   `json:"version" doc:"The version of the model."`
	Network    string   `json:"network"`
	Method     string   `json:"method"`
	Data       string   `json:"data" doc:"The name of the training data."`
	Examples   int      `json:"examples" doc:"The number of training images."`
	Parameters int      `json:"parameters"`
	Channels   int      `json:"channels"`
	Height     int      `json:"height"`
	Width      int      `json:"width"`
	ClassNames []string `json:"classNames"`
	Samples    int      `json:"samples" doc:"Posterior samples averaged."`
	Expected   int      `json:"expected" doc:"Posterior samples when the run is finished."`
	Calibrated bool     `json:"calibrated" doc:"Whether both level and inDistributionRate are present."`
	// See bayes.Decisions.
	Level              float64               `json:"level,omitzero" doc:"The probability with which a prediction set contains the true class."`
	InDistributionRate float64               `json:"inDistributionRate,omitzero" doc:"The fraction of in-distribution images that are recognized as such."`
	SetRule            *evaluate.SetRule     `json:"setRule,omitempty" doc:"How prediction sets are formed."`
	Thresholds         []classThreshold      `json:"classThresholds,omitempty" doc:"The thresholds of class-conditional sets."`
	Risk               *evaluate.Certificate `json:"risk,omitempty" doc:"The certificate by which images are answered or referred to a person."`
	Calibration        *calibration          `json:"calibration,omitempty" doc:"What the run was calibrated on."`
	SelfTest           *selfTest             `json:"selfTest,omitempty" doc:"The run's test of in-distribution decisions on strange images."`
	MaxImages          int                   `json:"maxImages" doc:"The maximum number of images of a request."`
	MaxBody            int                   `json:"maxBody" doc:"The maximum bytes of a request."`
	MaxPixels          int                   `json:"maxPixels" doc:"The maximum pixels of an image."`
	Digest             string                `json:"digest" doc:"The digest of the run."`
}

// classThreshold is a threshold with the name of its class.
type classThreshold struct {
	Class string `json:"class"`
	evaluate.ClassThreshold
}

// calibration describes an evaluate.Calibration.
type calibration struct {
	Data    string `json:"data"`
	Images  int    `json:"images"`
	Content string `json:"content,omitempty"` // SHA-256 of images and labels
	// See evaluate.Calibration.Scaled.
	Exponent float64 `json:"exponent,omitzero" doc:"The power to which probabilities are raised before they are normalized; absent if they are not scaled."`
}

// selfTest is an evaluate.SelfTest.
type selfTest struct {
	Passed   bool    `json:"passed"`
	Result   string  `json:"result" doc:"The result in words, such as \"rejects 97 % of 600 strange images\"."`
	Images   int     `json:"images"`
	Rejected float64 `json:"rejected" doc:"The fraction of the images that is rejected."`
}

// limits fills in the limits of requests.
func (a *runInfo) limits(o Options) {
	a.MaxImages, a.MaxBody, a.MaxPixels = o.MaxImages, o.MaxBody, o.MaxPixels
}
