package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
)

func chainsCommand(o *options) *cobra.Command {
	var networks []string
	var counts []int
	c := &cobra.Command{
		Use:   "chains",
		Short: "Many chains: total images per second",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := positive("chains", counts...); err != nil {
				return err
			}
			r := newRecord()
			fmt.Printf("chains of SGLD, batch 100, %s\n", r.Machine.describe())
			for _, network := range networks {
				if err := chains(c, o, network, counts, r); err != nil {
					return err
				}
			}
			return r.write(o)
		},
	}
	c.Flags().StringSliceVar(&networks, "networks", []string{"lenet-small", "mnist-64-64-256"}, "networks, as layers.New names them")
	c.Flags().IntSliceVar(&counts, "chains", []int{1, 2, 4, 16}, "numbers of chains")
	return c
}

// chains compares one chain on one thread with several on all threads.
func chains(c *cobra.Command, o *options, network string, counts []int, r *record) (err error) {
	t := training{network: network, batch: 100, sampler: "sgld"}
	sides := []*side{}
	defer func() { err = cmp.Or(err, closeAll(sides)) }()
	items := []float64{}
	for i, n := range append([]int{1}, counts...) {
		threads := o.threads
		if i == 0 {
			threads = 1
		}
		does, err := newPollen(t, threads, n)
		if err != nil {
			return err
		}
		sides = append(sides, &side{name: fmt.Sprintf("%d on %d threads", n, threads), does: does})
		items = append(items, float64(n*t.batch))
	}
	if err := alternate(c.Context(), sides, o.rounds); err != nil {
		return err
	}
	fmt.Println(network)
	alone := items[0] / sides[0].figures().Median
	for i, s := range sides {
		f := s.figures()
		e := entry{Case: "chains " + network, Side: s.name, Seconds: f, Rate: items[i] / f.Median, Unit: "images"}
		r.Entries = append(r.Entries, e)
		fmt.Printf("  %-18s %10.2f ms a step  %10.0f images/s  %5.2f times one chain on one thread\n", s.name, 1e3*f.Median, e.Rate, e.Rate/alone)
	}
	return nil
}
