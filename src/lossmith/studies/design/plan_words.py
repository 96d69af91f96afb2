"""The plan of a study in words: what is tuned, where, and by which recipe."""

from lossmith.recipes import recipe_named
from lossmith.statistics.wording import spoken
from lossmith.studies.design.settings import Settings

__all__ = ["recipe_text", "tuning_text"]


def tuning_text(settings: Settings) -> str:
    """Return what is tuned for each loss and where, or which settings are given."""
    if not settings.searched:
        return _given_settings_text(settings)
    where = "on clean labels" if settings.tune_on == "clean" else "at each noise on rows as noisy"
    return (
        f"{settings.trials_of_a_cell} trials of {_what_is_tuned(settings)} for each loss, chosen {where}"
        f" by {spoken(settings.metric)}"
    )


def recipe_text(settings: Settings) -> str:
    """Return the recipe by name with its paper; nothing where there is none."""
    if not settings.published:
        return ""
    recipe = recipe_named(settings.published)
    return f"{recipe.name}: {recipe.summary}\n          {recipe.reference}"


def _given_settings_text(settings: Settings) -> str:
    """Return the learning rate and weight decay of each loss, where there is only one."""
    if not settings.gives_rates:
        return ""
    of_losses = {loss: (settings.rates_of(loss)[0], *(settings.decays_of(loss) or (0.0,))) for loss in settings.losses}
    texts = {loss: f"learning rate {rate:g}, weight decay {decay:g}" for loss, (rate, decay) in of_losses.items()}
    if len(set(texts.values())) == 1:
        return f"none: {texts[settings.losses[0]]}"
    return "none:\n          " + "\n          ".join(f"{loss}: {text}" for loss, text in texts.items())


def _what_is_tuned(settings: Settings) -> str:
    decays = max(len(settings.decays_of(loss)) for loss in settings.losses)  # 0 where they are drawn
    drawn = not settings.gives_rates and decays == 0
    what = "learning rate and weight decay" if drawn or decays > 1 else "learning rate"
    if settings.is_own:
        what = " and ".join(name.replace("_", " ") for name in settings.tuned)
    also = "parameters of the loss" if "parameters" in settings.tune else ""
    return " and ".join(filter(None, (what, also)))
