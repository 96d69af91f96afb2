"""``lossmith compare [DATA]``."""

import argparse
from pathlib import Path
from typing import Any

NAME = "compare"
HELP = "train a set of losses on your data, under label noise, over replicates, and say which is best"
EPILOG = """examples:
  lossmith compare
  lossmith compare reviews.csv --target rating --losses ce,gce,"logit-bias(mae)",bi-tempered --noise 0,0.2 --seeds 10
  lossmith compare photos/ --model resnet20
  lossmith compare train.py:fn --losses ce,gce --tune learning_rate=1e-4:0.1 --epochs 20
  lossmith compare study.toml --dry-run
"""

ANALYSED = ("features", "weights")
_NOT_SETTINGS = ("output", "dry_run", "no_report", "analyse")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take data and settings. What is not given has the default of the settings, so that no default is written here."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.argument_default = argparse.SUPPRESS
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="a table, images, arrays, the name of a data set, a function as train.py:fn, or a study.toml (default: digits)",
    )
    _add_study(parser.add_argument_group("what to compare"))
    _add_training(parser.add_argument_group("training"))
    _add_data(parser.add_argument_group("data"))
    add_workplace(parser.add_argument_group("where to train"))
    _add_output(parser.add_argument_group("output"))


def _add_study(group: Any) -> None:
    group.add_argument(
        "--losses",
        metavar="LIST",
        help="losses or objectives, such as ce,gce(q=0.5); the first is the baseline",
    )
    group.add_argument("--recipe", metavar="NAME", help="train as a paper did, such as staats-fashion; 'lossmith list' names all")
    group.add_argument("--noise", metavar="LIST", help="such as 0,0.2,pair(0.3) (default: 0,0.2)")
    group.add_argument("--seeds", type=int, metavar="N", help="replicates, each with its own split (default: what fits)")
    group.add_argument("--metric", metavar="NAME", help="accuracy, balanced-accuracy, macro-f1, nll, brier or top5")
    group.add_argument("--minutes", type=float, metavar="N", help="the time to use (default: 15 at most, less for small data)")
    group.add_argument("--trials", type=int, metavar="N", help="settings tried for each loss, noise and replicate (default: 9)")
    group.add_argument("--rates", metavar="LIST", help="learning rates to try instead of rates drawn from the usual range")
    group.add_argument("--decays", metavar="LIST", help="weight decays to try instead of decays drawn from the usual range")
    group.add_argument("--loss-rates", metavar="LIST", help="a learning rate for each loss, such as ce=0.1,gce=0.3")
    group.add_argument("--loss-decays", metavar="LIST", help="the same of weight decays")
    group.add_argument(
        "--tune", metavar="WHAT", help="settings, the losses' own parameters, too, or such as learning_rate=1e-4:0.1"
    )
    group.add_argument("--tune-on", metavar="WHERE", help="choose on each noise's own rows, or on clean labels as papers do")
    group.add_argument("--class-weight", metavar="HOW", help="none, balanced or effective(BETA): rare classes weigh more")
    group.add_argument("--draws", metavar="WHOSE", help="initial weights, batches and trials: common to all losses, or own")
    group.add_argument("--no-references", dest="references", action="store_false", help="train no classical models beside")
    group.add_argument("--num-classes", type=int, metavar="N", help="for losses that depend on it, where train.py:fn trains")
    group.add_argument("--processes", type=int, metavar="N", help="that call train.py:fn together for one trial (default: 1)")
    group.add_argument("--clean-validation", action="store_true", help="leave the labels of the validation split as they are")


def _add_training(group: Any) -> None:
    group.add_argument(
        "--model",
        metavar="NAME",
        help="such as tabular, mlp, mlp1024, small-cnn, resnet20, wrn-16-8 or lstm (default: what suits the data)",
    )
    group.add_argument("--epochs", type=int, metavar="N", help="of each training (default: what suits model and rows)")
    group.add_argument("--batch-size", type=int, metavar="N", help="rows of a step (default: what suits the model)")
    group.add_argument("--optimizer", metavar="NAME", help="sgd, adam, adamw or adadelta")
    group.add_argument(
        "--schedule",
        metavar="NAME",
        help="of the learning rate: constant, cosine, warmup-cosine, exponential, steps or steps(100, 150, factor=0.1)",
    )
    group.add_argument("--momentum", type=float, metavar="X", help="of sgd, Nesterov's (default: 0.9)")
    group.add_argument("--no-nesterov", dest="nesterov", action="store_false", help="momentum that does not look ahead")
    group.add_argument(
        "--no-decay-vectors",
        dest="decay_vectors",
        action="store_false",
        help="no weight decay of biases and normalisation",
    )
    _add_care(group)


def _add_care(group: Any) -> None:
    """Take what keeps training from fitting too much or too little, and what is kept of it."""
    group.add_argument(
        "--precision", metavar="NAME", help="auto (default), float32 or bfloat16: of the layers below the final one"
    )
    group.add_argument(
        "--augment",
        metavar="LIST",
        help="changes of images in training: auto (default), none, or some of crop,flip,cutout,policy",
    )
    group.add_argument("--clipping", type=float, metavar="X", help="the largest norm of a gradient")
    group.add_argument("--mixup", type=float, metavar="X", help="parameter of the Beta distribution of mixing weights")
    group.add_argument("--averaging", type=float, metavar="X", help="decay of the moving average of the weights")
    group.add_argument("--patience", type=int, metavar="N", help="stop after N epochs without a better validation accuracy")
    group.add_argument(
        "--select", metavar="WHICH", help="the epoch whose predictions count: last, or best on the validation split"
    )
    group.add_argument("--keep", metavar="LIST", help="what to keep of each run: features, weights")


def _add_data(group: Any) -> None:
    group.add_argument("--target", metavar="COLUMN", help="the column of the labels")
    group.add_argument("--true-label", metavar="COLUMN", help="the column of the true classes, where labels are noisy already")
    group.add_argument("--test", metavar="DATA", help="data of its own for the test split")
    group.add_argument("--validation", metavar="DATA", help="data of its own for the validation split")
    group.add_argument("--split-column", metavar="COLUMN", help="the column that says train, validation or test")
    group.add_argument(
        "--test-share", type=float, metavar="X", help="of all rows, where the data has no test split (default: 0.2)"
    )
    group.add_argument("--validation-share", type=float, metavar="X", help="the same of the validation split (default: 0.15)")
    group.add_argument("--rows", type=int, metavar="N", help="use N rows at most, drawn by chance; a test split stays whole")
    group.add_argument(
        "--imbalance",
        metavar="RATIO",
        help="make a long tail of the training rows, judged by balanced accuracy: 0.01, exponential(0.01) or step(0.01)",
    )
    group.add_argument(
        "--train-rows", type=int, metavar="N", help="train on N rows of each replicate at most, and choose on as many"
    )
    group.add_argument("--seed", type=int, metavar="N", help="decides which rows serve for what (default: 0)")
    group.add_argument("--groups", metavar="COLUMN", help="the column of coarse groups of classes, for noise within them")
    group.add_argument("--resize", type=int, metavar="PIXELS", help="height and width for images of different sizes")
    group.add_argument("--folder", metavar="FOLDER", help="where data that is known by name can be found")
    group.add_argument("--text", metavar="HOW", help="texts as weighted ngrams, or as words for an lstm")
    group.add_argument("--encoder", metavar="FOLDER", help="a pretrained model of Hugging Face on disk, which reads the texts")
    group.add_argument("--fine-tune", action="store_true", help="train the encoder, too")
    group.add_argument("--cache", metavar="FOLDER", help="where what an encoder computed is kept (default: the user's cache)")


def add_workplace(group: Any) -> None:
    """Take where a study is trained."""
    group.add_argument("--workers", type=int, metavar="N", help="processes that train (default: one for each processor)")
    group.add_argument("--device", metavar="NAME", help="auto (default: the best there is), cpu, cuda, cuda:1 or mps")
    group.add_argument("--engine", metavar="NAME", help="local (default): processes of this machine; ray: a cluster")
    group.add_argument("--ray-address", metavar="HOST:PORT", help="of the cluster's head (default: as Ray finds it, or here)")
    group.add_argument("--trial-cpus", type=int, metavar="N", help="processors of a trial (default: 1)")
    group.add_argument("--trial-gpus", type=float, metavar="X", help="GPUs of a trial on cuda (default: 1); 0.5 lets two share")


def _add_output(group: Any) -> None:
    group.add_argument("--output", type=Path, metavar="FOLDER", help="of the study (default: studies/NAME)")
    group.add_argument(
        "--analyse", action="store_true", help="keep features and weights, and measure what the losses do to them, too"
    )
    group.add_argument("--track", metavar="LIST", help="send runs and the report to mlflow, wandb or tensorboard as they finish")
    group.add_argument("--dry-run", action="store_true", help="print the plan, what it would cost and write, and stop")
    group.add_argument("--no-report", action="store_true", help="write no report")


def run(options: argparse.Namespace) -> None:
    """Compare, print the table and the recommendation, and name the report."""
    from lossmith.studies.design.settings_file import read_settings

    given = {name: value for name, value in vars(options).items() if name != "run"}
    how: dict[str, Any] = {name: given.pop(name) for name in _NOT_SETTINGS if name in given}
    file = Path(given.get("data", "digits"))
    if file.suffix == ".toml":
        given = {**read_settings(file), **{name: value for name, value in given.items() if name != "data"}}
    if how.get("analyse"):
        given["keep"] = _with_all_that_is_analysed(given.get("keep", []))
    _compare(given, how)


def _with_all_that_is_analysed(keep: Any) -> list[Any]:
    """Return what to keep of each run, as a list, whether it was written on the command line or in a file."""
    from lossmith.studies.design.setting_checks import split_list

    asked = split_list(keep) if isinstance(keep, str) else keep if isinstance(keep, list) else [keep]
    return [*(name for name in asked if name not in ANALYSED), *ANALYSED]


def _compare(given: dict[str, Any], how: dict[str, Any]) -> None:
    from lossmith.commands.printing.answer import train_and_answer
    from lossmith.studies.compare import planned
    from lossmith.studies.design.given_settings import settings_from
    from lossmith.training.engines.workplace import take_workplace

    workplace, settings = take_workplace(given)
    comparison = planned(settings_from(settings), output=how.get("output"), workplace=workplace)
    if how.get("dry_run"):
        print(comparison.describe())
    else:
        where = str(workplace.device_here())
        train_and_answer(comparison, report=not how.get("no_report"), analyse="analyse" in how, device=where)
