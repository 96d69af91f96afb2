"""What tests of an analysis compute for themselves."""

import torch

from lossmith.analysis.cka import MinibatchCKA

BATCH = 125


def each_run(study):
    return study.results.itertuples()


def predictions(study):
    return {(row.loss, row.seed): study.test_probabilities(row.run).argmax(1) for row in each_run(study)}


def shared_rows(study, first=0, second=1):
    """Return the places of the rows that two replicates share in either test split, found from the data itself."""
    own, others = (study.load(seed).test.tolist() for seed in (first, second))
    shared = [row for row in own if row in set(others)]
    return [own.index(row) for row in shared], [others.index(row) for row in shared]


def similarity(first, second, first_inputs, second_inputs, layers):
    """Return the CKA of two models that have inputs of their own for the same rows, batch by batch."""
    cka = MinibatchCKA()
    for start in range(0, len(first_inputs), BATCH):
        both = zip((first, second), (first_inputs, second_inputs), strict=True)
        features = [list(layer_outputs(model, inputs[start : start + BATCH], layers)) for model, inputs in both]
        cka.update(*features)
    return cka.result()


def layer_outputs(model, inputs, layers):
    found = {}
    hooks = [
        model.get_submodule(layer).register_forward_hook(lambda _, __, out, layer=layer: found.update({layer: out.clone()}))
        for layer in layers
    ]
    with torch.no_grad():
        model(inputs)
    for hook in hooks:
        hook.remove()
    return [found[layer].flatten(1) for layer in layers]
