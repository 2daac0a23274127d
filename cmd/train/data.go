package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
)

// loadData loads a split and says what it had to download and to leave out.
func loadData(ctx context.Context, name string, split datasets.Split, folder string, c *console) (*datasets.Dataset, error) {
	if err := checkDataFolder(folder); err != nil {
		return nil, err
	}
	announced := ""
	data, err := datasets.Load(name, split, datasets.Options{Folder: folder, Context: ctx, Progress: func(file string, _, total int64) {
		if file != announced {
			announced = file
			c.remark("downloading %s, %.1f MB", file, float64(total)/1e6)
		}
	}})
	if err != nil {
		return nil, err
	}
	if n := len(data.Skipped); n > 0 {
		c.remark("%s: %s could not be read and left out, first %s", data.Name, counted(n, "file"), data.Skipped[0])
	}
	return data, nil
}

// checkDataFolder refuses a folder that is not there: data would be taken from somewhere else.
func checkDataFolder(folder string) error {
	if folder == "" {
		return nil
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return usage("train: data-folder: there is no folder %s", folder)
	}
	return nil
}

func bindDataFolder(f *pflag.FlagSet, folder *string) {
	f.StringVar(folder, "data-folder", "", "folder with data sets, looked into first")
}

func datasetsCommand(c *console) *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use: "datasets", Short: "list the data sets and where they are", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := checkDataFolder(folder); err != nil {
				return err
			}
			for _, d := range datasets.List(datasets.Options{Folder: folder}) {
				printDataset(d, c)
			}
			return nil
		},
	}
	bindDataFolder(command.Flags(), &folder)
	return command
}

func printDataset(d datasets.Description, c *console) {
	fmt.Fprintf(c.out, "%s: %s, %dx%d\n", d.Name, d.What, d.Height, d.Width)
	missing := false
	for i, split := range []datasets.Split{datasets.Train, datasets.Test} {
		images, place := fmt.Sprintf("%d images", d.Images[i]), d.Places[i]
		if d.Images[i] == 0 {
			images = ""
		}
		if place == "" {
			place, missing = "not here", true
		}
		fmt.Fprintf(c.out, "  %-5s  %12s  %s\n", split, images, place)
	}
	if missing {
		fmt.Fprintf(c.out, "  %s\n", d.Advice)
	}
}
