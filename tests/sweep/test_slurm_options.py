"""What a cluster may be asked for, and what is refused before it is asked."""

import pytest

from transformer_ablation.sweep.slurm_options import SlurmError, SlurmOptions, parse


def test_flags_win_over_the_file_and_lists_add_up():
    block = {"partition": "main", "time": None, "cpus": 2, "sbatch": ["--nice"]}
    given = ["partition=gpu", "time=1-12:00:00", "sbatch=--constraint=a100|h200"]
    assert parse(block, given) == SlurmOptions(
        partition="gpu",
        time="1-12:00:00",
        cpus=2,
        sbatch=("--nice", "--constraint=a100|h200"),
    )


def test_nothing_asked_leaves_all_to_the_cluster():
    found = parse({}, [])
    assert found.partition is None and found.time is None and found.sbatch == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gpu", "--slurm=gpu: must be KEY=VALUE"),
        ("partion=gpu", "slurm partion: unknown key; did you mean partition?"),
        ("partition=a b", "must be one word without spaces"),
        ("account=$(id)", "must be one word"),
        ("qos=a#b", "must be one word"),
        ("gres=gpu:1\n#SBATCH --uid=0", "must be one word"),
        ("gres=", "must be one word"),
        ("partition='x'", "must be one word"),
        ("time=4h", "must be minutes, H:MM:SS or D-HH:MM:SS"),
        ("mem=4 GB", "must be megabytes"),
        ("cpus=0", "must be a whole number from 1"),
        ("array_limit=two", "must be a whole number"),
        ("sbatch=-C a100", "must be --name or --name=value in one word"),
        ("sbatch=--comment=a b", "must be --name or --name=value in one word"),
        ("sbatch=--array=0-9", "is set by the script itself"),
        ("sbatch=--no-requeue", "is set by the script itself"),
        ("sbatch=--partition=x", "use the key partition instead"),
        ("setup=module load x\nid", "must be one line of printable"),
    ],
)
def test_faults_are_named(given, message):
    with pytest.raises(SlurmError) as error:
        parse({}, [given])
    assert message in str(error.value)


def test_faults_of_a_file_are_all_named():
    with pytest.raises(SlurmError) as error:
        parse({"mem": "much", "cpus": 1.5, "setup": "module load cuda"}, [])
    lines = str(error.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "slurm mem",
        "slurm cpus",
        "slurm setup",
    ]
