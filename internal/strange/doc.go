// Package strange makes images that cannot belong to a run's classes, with which a run tests
// whether it tells strange images from its own. The images depend on the arguments only.
package strange
