package nearest

import "testing"

func TestName(t *testing.T) {
	for _, row := range []struct {
		mistyped, want string
	}{
		{"fti", "fit"}, {"predcit", "predict"}, {"pridikt", "predict"}, {"predictions", ""}, {"", ""}, {"f", ""}, {"evaluate", ""}, {"fits", "fit"},
		{"Fit", "fit"}, {"conv2d", "Conv2D"},
	} {
		if got := Name(row.mistyped, []string{"fit", "predict", "eval", "Conv2D"}); got != row.want {
			t.Errorf("%q: nearest %q, want %q", row.mistyped, got, row.want)
		}
	}
}

func TestAmong(t *testing.T) {
	const list = "constant:RATE, cosine:FIRST,LAST, x=3, resnet-x<factor>"
	items := []string{"constant:RATE", "cosine:FIRST,LAST", "x=3", "resnet-x<factor>"}
	for mistyped, want := range map[string]string{
		"0.1": "there are " + list, "cosin:0.1": "did you mean cosine? There are " + list, "resnetx": "did you mean resnet-x? There are " + list,
		"constant,0.1": "did you mean constant? There are " + list,
	} {
		if got := Among(mistyped, items); got != want {
			t.Errorf("Among(%q) = %q, want %q", mistyped, got, want)
		}
	}
}
