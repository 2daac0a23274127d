#!/bin/bash
#SBATCH --job-name=flowers
#SBATCH --array=0-7%4
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --output=/scratch/flowers/logs/%a.log
#SBATCH --cpus-per-task=2
#SBATCH --mem=4096M
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --time=4:00:00
#SBATCH --partition=spot
#SBATCH --account=me

cd /home/me || exit 1
/opt/pollen fit --config '/home/me/my run.yaml' --folder /scratch/flowers --task auto &
pollen=$!
# Slurm signals only this shell: forward the signal. The program then saves its state and exits.
trap 'kill -USR1 "$pollen"' USR1
trap 'kill -TERM "$pollen"' TERM
while wait "$pollen"; kill -0 "$pollen" 2>/dev/null; do :; done
wait "$pollen"
code=$?
# 138: the time limit is near. Slurm itself requeues a preempted task, and a cancelled task stays
# cancelled. On nodes without scontrol, RequeueExit=138 in slurm.conf has the same effect.
if [ "$code" = 138 ] && command -v scontrol >/dev/null; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
