package pollen

import (
	"context"
	"reflect"
)

// checkContext refuses a nil context, which would be a panic later.
func checkContext(ctx context.Context, task string) error {
	if ctx == nil {
		return invalid("%s: the context must not be nil: use context.Background", task)
	}
	return nil
}

// checkNil refuses nil pointers among methods and schedules, of which interfaces are not nil.
func checkNil(what string, value any) error {
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() {
		return invalid("%s must not be a nil %T", what, value)
	}
	return nil
}
