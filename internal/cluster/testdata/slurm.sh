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
# Warnings reach this shell only: pass them on. The program then keeps all it has and ends.
trap 'kill -USR1 "$pollen"' USR1
trap 'kill -TERM "$pollen"' TERM
while wait "$pollen"; kill -0 "$pollen" 2>/dev/null; do :; done
wait "$pollen"
code=$?
# 138: the time was nearly over. After a preemption Slurm itself puts the task back, and a task
# that was cancelled stays so. Without scontrol on the nodes, RequeueExit=138 in slurm.conf does it.
if [ "$code" = 138 ] && command -v scontrol >/dev/null; then
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
