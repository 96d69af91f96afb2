"""Amid, Warmuth, Anil and Koren, "Robust bi-tempered logistic loss based on Bregman divergences"."""

from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES"]

MNIST = PublishedRecipe(
    name="amid-mnist",
    summary="two convolutions on MNIST with up to 50 % wrong labels, bi-tempered against logistic",
    reference="Amid, Warmuth, Anil and Koren, Robust bi-tempered logistic loss, section 5.1 and table 1",
    data="mnist",
    losses=(PublishedLoss("ce"), PublishedLoss("bi-tempered(t1=0.5, t2=4.0)")),
    settings={
        "noise": ("0", "0.1", "0.2", "0.3", "0.4", "0.5"),
        "model": "cnn",
        "epochs": 500,
        "batch_size": 128,
        "optimizer": "adadelta",
        "schedule": "constant",
        "decays": (0.0,),
        "select": "best",
        "augment": "none",
    },
    differs=(
        "learning rates are drawn, for those that the paper searched are not published",
        "the temperatures are those that the paper found; give --tune parameters to search them as it did",
        "dropout keeps 75 % of the 1024 features; the paper does not say of which layer",
        "neither the start of the weights nor the number of runs is published",
    ),
)

RECIPES = (MNIST,)
