"""Staats, Thamm and Rosenow, "Noise-robust loss functions: enhancing bounded losses for large-scale noisy data learning"."""

from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES"]

PAPER = "Staats, Thamm and Rosenow, Noise-robust loss functions"
NOISE = ("0", "uniform(0.1)", "uniform(0.2)", "uniform(0.4)", "uniform(0.6)")
"""Random labels for a share of the training rows: some of them are the true ones."""
WHOLE = {"validation_share": 0.0, "references": False}
"""No rows are held out, for the paper chose its learning rates on test rows; classical models would have none to be tuned on."""

COMMON = {"noise": NOISE, "seeds": 5, "tune_on": "clean", "optimizer": "sgd", "nesterov": False} | WHOLE

RESIDUAL = COMMON | {
    "augment": "crop,flip",
    "epochs": 200,
    "batch_size": 128,
    "momentum": 0.9,
    "rates": (0.1,),
    "decays": (1e-4,),
}
TEN_CLASSES = RESIDUAL | {"model": "resnet32", "schedule": "steps(100, 150, epochs=200)"}

FASHION = PublishedRecipe(
    name="staats-fashion",
    summary="MLP1024 on Fashion-MNIST with up to 60 % random labels, seven losses",
    reference=f"{PAPER}, appendix 1 and 5, tables 1 to 3 of the appendix",
    data="fashion-mnist",
    losses=(
        PublishedLoss("ce", 0.005),
        PublishedLoss("mae", 0.0008),
        PublishedLoss("logit-bias(mae, epsilon=0.5)", 0.003),
        PublishedLoss("gce(q=0.7)", 0.01),
        PublishedLoss("nf-mae@10", 0.001),
        PublishedLoss("nce-mae@10", 0.001),
        PublishedLoss("bi-tempered(t1=0.8, t2=1.2)", 0.01),
    ),
    settings=COMMON
    | {
        "model": "mlp1024",
        "epochs": 100,
        "batch_size": 32,
        "momentum": 0.95,
        "schedule": "exponential(0.95)",
        "decays": (0.0,),
        "augment": "none",
    },
    differs=(
        "the epochs of MLP1024 are not published; 100, after which the learning rate is 0.6 % of what it was",
        "symmetric cross-entropy is left out, for its learning rate is not published",
    ),
)

FASHION_RESIDUAL = PublishedRecipe(
    name="staats-fashion-resnet",
    summary="ResNet-32 on Fashion-MNIST with up to 60 % random labels, nine losses",
    reference=f"{PAPER}, table 2, and appendix 1 with its table 1",
    data="fashion-mnist",
    losses=tuple(
        map(
            PublishedLoss,
            (
                "ce",
                "mae",
                "logit-bias(mae, epsilon=0.5)",
                "agce@10",
                "gce(q=0.7)",
                "nce-agce@10",
                "nf-mae@10",
                "nce-mae@10",
                "bi-tempered(t1=0.8, t2=1.2)",
            ),
        )
    ),
    settings=TEN_CLASSES,
    differs=(),
)

CIFAR_10 = PublishedRecipe(
    name="staats-cifar-10",
    summary="ResNet-32 on CIFAR-10 with up to 60 % random labels, nine losses",
    reference=FASHION_RESIDUAL.reference,
    data="cifar-10",
    losses=FASHION_RESIDUAL.losses,
    settings=TEN_CLASSES,
    differs=(),
)

CIFAR_100 = PublishedRecipe(
    name="staats-cifar-100",
    summary="ResNet-34 on CIFAR-100 with up to 60 % random labels, ten losses",
    reference=FASHION_RESIDUAL.reference,
    losses=tuple(
        map(
            PublishedLoss,
            (
                "ce",
                "mae",
                "logit-bias(mae, epsilon=1.5)",
                "logit-bias(mae, epsilon=3.0)",
                "agce@100",
                "gce(q=0.7)",
                "nce-agce@100",
                "nf-mae@100",
                "nce-mae@100",
                "bi-tempered(t1=0.8, t2=1.2)",
            ),
        )
    ),
    settings=RESIDUAL | {"model": "resnet34", "schedule": "steps(60, 120, 160, factor=0.2, epochs=200)"},
    differs=("images are not turned; the paper turns them by up to 15 degrees",),
)

RECIPES = (FASHION, FASHION_RESIDUAL, CIFAR_10, CIFAR_100)
