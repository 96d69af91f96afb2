"""Berrada, Zisserman and Kumar, "Smooth loss functions for deep top-k classification"."""

from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES"]

CIFAR_100 = PublishedRecipe(
    name="berrada-cifar",
    summary="DenseNet 40-40 on CIFAR-100 with wrong labels within coarse classes, smooth top-5 against cross-entropy",
    reference="Berrada, Zisserman and Kumar, Smooth loss functions for deep top-k classification, section 5.1",
    losses=(PublishedLoss("ce"), PublishedLoss("smooth-topk(k=5, tau=1.0)")),
    settings={
        "noise": ("0", *(f"uniform-within-groups({share})" for share in ("0.2", "0.4", "0.6", "0.8", "1.0"))),
        "seeds": 3,
        "metric": "top5",
        "model": "densenet-40-40",
        "epochs": 300,
        "batch_size": 64,
        "optimizer": "sgd",
        "momentum": 0.9,
        "schedule": "steps(150, 225, epochs=300)",
        "rates": (0.1,),
        "decays": (1e-4,),
        "validation_share": 0.1,
        "select": "best",
        "augment": "crop,flip",
    },
    differs=(
        "the epoch that counts is the best by accuracy on the validation rows, not by top-5 accuracy",
        "the network has bottlenecks and compression (DenseNet-BC), as in the program of the authors",
        "the data must say which coarse class each class belongs to: --groups",
    ),
)

RECIPES = (CIFAR_100,)
