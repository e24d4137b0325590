#!/usr/bin/env bash
# Trains a config on a Slurm cluster: GPUS processes (8), GPUS_PER_NODE (8) a node, each with
# CPUS_PER_TASK (5). SRUN_ARGS holds more arguments of srun, separated by spaces.
set -euo pipefail

if [[ $# -lt 4 ]]; then
    echo "usage: $0 PARTITION JOB CONFIG WORK_DIR [arguments of train.py]" >&2
    exit 2
fi
partition=$1
job=$2
config=$3
work_dir=$4
shift 4

gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-8}
if ((gpus < per_node)); then
    per_node=$gpus
fi
# an empty list is unset to bash before 4.4
read -r -a more <<<"${SRUN_ARGS:-}"
exec srun --partition="$partition" --job-name="$job" --gres="gpu:$per_node" --ntasks="$gpus" \
    --ntasks-per-node="$per_node" --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
    ${more[@]+"${more[@]}"} "${PYTHON:-python}" -u "$(dirname "${BASH_SOURCE[0]}")/train.py" \
    "$config" --work-dir "$work_dir" --launcher slurm "$@"
