"""Battash, Hazan and Wolf, "Mixing between the cross entropy and the expectation loss terms"."""

from dataclasses import replace

from lossmith.recipes.published_recipe import PublishedLoss, PublishedRecipe

__all__ = ["RECIPES"]

UCI = PublishedRecipe(
    name="battash-uci",
    summary="a linear classifier on a table, cross-entropy mixed with the expectation loss",
    reference="Battash, Hazan and Wolf, Mixing between the cross entropy and the expectation loss terms, table 4",
    losses=tuple(map(PublishedLoss, ("ce", "ce-el", "ce-el-late", "ce-el-gradual", "el", "focal"))),
    settings={
        "noise": ("0",),
        "seeds": 2,
        "model": "linear",
        "epochs": 50,
        "batch_size": 8,
        "optimizer": "sgd",
        "momentum": 0.9,
        "nesterov": False,
        "schedule": "constant",
        "rates": (0.01, 0.005, 0.001),
        "decays": (0.0,),
        "select": "best",
    },
    differs=(
        "the optimiser is not published for tables; momentum of 0.9, as for images, and a constant rate",
        "the parameter of the focal loss is not published; 2",
        "two replicates say little; give --seeds",
    ),
)

UCI_HIDDEN = replace(
    UCI,
    name="battash-uci-hidden",
    summary="one hidden layer as wide as the input on a table, cross-entropy mixed with the expectation loss",
    settings={**UCI.settings, "model": "ixi"},
)

RECIPES = (UCI, UCI_HIDDEN)
