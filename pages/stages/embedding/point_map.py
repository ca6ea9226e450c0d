"""The rows of the table as points: along the directions in which they spread most, or so that near ones stay near."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.embedding.similarity import Neighbours, cosine
from lmcore.analysis.embedding.tsne import STEPS, TsneProgress
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.embedding import table as figures
from pages.live.token_map import Colours, Frame, token_map
from pages.stages.embedding import sample, tsne_runs
from pages.stages.embedding.common import (
    compare,
    components_of,
    label_of,
    labels_of,
    rows_of,
    steps_picker,
    token_picker,
)
from pages.stages.embedding.neighbours import table_code

_NEAR = 8
_PICKED = "table.picked"  # in the session: ids that the reader encircled
_PRESSED = "map.pressed"  # something was chosen on the map: the whole page is to run, not the map alone
_REFRESH = 0.8  # seconds between two looks at a map in the making

CODE = """
import numpy as np
import lmcore
from lmcore.corpus.occurring import occurring_tokens
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.pca import principal_components

lm = lmcore.load({name!r})
shown = {shown}
points = {table}[shown]
components = principal_components({basis}[shown])
print(components.explained(points, {n}))  # shares of the variance
print(components.project(points, {n})[:5])  # of the first five tokens shown
"""

TSNE_CODE = """
import numpy as np
import lmcore
from lmcore.corpus.occurring import occurring_tokens
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.tsne import TsneRun

lm = lmcore.load({name!r})
shown = {shown}
run = TsneRun({table}[shown], n_axes={n}, start={start!r}, seed={seed})
run.join()
print(run.progress.places[:5])  # of the first five tokens shown
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        method = widgets.choice(
            "table.method",
            _("Map method"),
            ["pca", "tsne"],
            "pca",
            format_func={"pca": "PCA", "tsne": "t-SNE"}.__getitem__,
            help=_(
                "PCA: exact, a projection of the rows on the directions of largest variance. t-SNE: nonlinear, "
                "it keeps rows with a large cosine near each other; only neighbourhoods are meaningful."
            ),
        )
        buttons = st.container()  # in sight without scrolling, though they need what is chosen below them
        n_axes = widgets.choice("table.axes", _("Dimensions"), [2, 3], 2, format_func=lambda n: f"{n}-D")
        token = token_picker("token", _("Token"), lm)
        steps, tables = steps_picker(lm)
        seed = widgets.number("table.seed", _("Seed"), 0, 999_999, 1, step=1)
        chosen = sample.choose(lm, seed)
        table = tables[steps]
        against = compare(lm, table[token], table)
        near = against.neighbours(_NEAR, "cosine", {token})
        ids = list(chosen.ids)
        more = method == "pca" and not chosen.closed
        if more:  # others can be shown along the same directions
            ids += [other for other in dict.fromkeys([token, *near.ids.tolist()]) if other not in set(ids)]
        points = rows_of(table, ids)
        lengths = points.norm(dim=-1)
        colours = sample.choose_colours(lm, ids, lengths)
    if method == "pca":
        places, titles, code = _components(lm, chosen, tables, steps, ids, n_axes, controls)
        progress = None
    else:
        with controls:
            wanted = tsne_runs.choose(lm.name, steps, ids, n_axes, seed)
        with buttons:
            progress = tsne_runs.buttons(wanted, points)
        places = components_of(f"{lm.name} {steps}", tuple(ids), table).project(points, n_axes).numpy()
        titles = []
        code = TSNE_CODE.format(
            name=lm.name,
            shown=chosen.code,
            table=table_code(steps, len(tables)),
            n=n_axes,
            start=wanted.start,
            seed=wanted.seed,
        )
    drawn = _Drawn(lm, ids, token, near, colours, titles)
    with picture:
        alive = progress is not None and progress.alive
        shown_places = places if progress is None or progress.places is None else progress.places
        if method == "tsne" and progress is None:
            st.info(
                _(
                    "This is the PCA map, where t-SNE starts. Press the button to make the t-SNE map; it takes "
                    "some seconds."
                )
            )
        st.fragment(_draw, run_every=_REFRESH if alive else None)(drawn, places, progress, wanted if alive else None)
        outside = [] if token in ids else [_("The chosen token is not in the sample. Choose a point on the map.")]
        st.caption(
            " ".join(
                [
                    _("Shown: {sample}.").format(sample=chosen.sentence),
                    _("Also shown: the chosen token and its neighbours.") if more else "",
                    *outside,
                    _("Click a point to choose its token. Click into the map first to zoom with the wheel."),
                ]
            )
        )
        _nearest(lm, token, near, against.neighbours(_NEAR, "dot", {token}))
    _table(lm, ids, token, table, shown_places, titles, colours, lengths)
    page.snippet(code)


def _components(
    lm: LanguageModel,
    chosen: sample.Sample,
    tables: dict[int, Tensor],
    steps: int,
    ids: list[int],
    n_axes: int,
    controls: st.delta_generator.DeltaGenerator,
) -> tuple[np.ndarray, list[str], str]:
    table, last = tables[steps], max(tables)
    with controls:
        basis = "trained"
        if steps != last:
            basis = widgets.select(
                "table.basis",
                _("Axes from"),
                ["trained", "this"],
                "trained",
                format_func={"trained": _("the trained table"), "this": _("this table")}.__getitem__,
                help=_("With the axes of the trained table, the points stay comparable when the steps change."),
            )
        of = last if basis == "trained" else steps
        components = components_of(f"{lm.name} {of}", tuple(chosen.ids), tables[of])
        shares = components.explained(table[chosen.ids], n_axes)
        share = shares.sum().item()
        st.metric(
            _("Variance explained"),
            f"{100 * share:.2f} %" if share == share else "—",
            help=_(
                "Exact principal components of the points shown. The rest of the variance is not on this map: "
                "for distances, read the list of neighbours."
            ),
        )
    title = _("component {n}: {share:.2f} % of the variance") if n_axes == 2 else _("component {n}: {share:.2f} %")
    titles = [title.format(n=axis + 1, share=100 * share) for axis, share in enumerate(shares.tolist())]
    made = table_code(steps, len(tables))
    code = CODE.format(
        name=lm.name,
        shown=chosen.code,
        table=made,
        basis="lm.model.token_embedding.weight.detach()" if basis == "trained" else made,
        n=n_axes,
    )
    return components.project(table[ids], n_axes).numpy(), titles, code


class _Drawn:
    """A map's points, whatever their places."""

    def __init__(
        self,
        lm: LanguageModel,
        ids: list[int],
        token: int,
        near: Neighbours,
        colours: Colours,
        titles: list[str],
    ) -> None:
        self._ids, self._colours, self._titles = ids, colours, titles
        self._names = [visible(lm.tokenizer.token_bytes(other)) for other in ids]
        self._labels = labels_of(lm, ids)
        self._chosen = ids.index(token) if token in ids else None
        where = {other: index for index, other in enumerate(ids)}
        self._near = [where[other] for other in near.ids.tolist() if other in where]

    def show(self, places: np.ndarray) -> None:
        """Draw them."""
        token_map(
            places[None],
            self._names,
            self._labels,
            key="embedding-map",
            alt=_("The rows of the table as points; the chosen token and its nearest by cosine are marked."),
            colours=self._colours,
            frames=[Frame(near=self._near)],
            chosen=self._chosen,
            axis_titles=self._titles,
            on_choose=lambda index: st.session_state.update({"token": self._ids[index], _PRESSED: True}),
            on_pick=lambda indices: st.session_state.update(
                {_PICKED: [self._ids[index] for index in indices], _PRESSED: True}
            ),
        )


def _draw(drawn: _Drawn, before: np.ndarray, progress: TsneProgress | None, making: tsne_runs.Wanted | None) -> None:
    """Draw the map; one in the making again and again until it is done."""
    if st.session_state.pop(_PRESSED, False):
        st.rerun()  # the whole page: what stands beside and below the map follows the choice
    if making is not None:
        progress = tsne_runs.latest(making)
    if progress is not None:
        _say(progress)
    drawn.show(before if progress is None or progress.places is None else progress.places)
    if making is not None and progress is not None and not progress.alive:
        st.rerun()  # the whole page, once: the buttons and the table change


def _say(progress: TsneProgress) -> None:
    state = {
        "waiting": _("Waiting until another map is finished"),
        "running": _("Making the map"),
        "finished": _("Finished"),
        "stopped": _("Stopped"),
        "failed": _("It failed"),
    }[progress.state]
    text = _("{state} · step {done} of {total}").format(state=state, done=progress.steps, total=STEPS)
    st.progress(progress.steps / STEPS, text=text)
    page.failure(progress.error)


def _nearest(lm: LanguageModel, token: int, by_cosine: Neighbours, by_dot: Neighbours) -> None:
    st.markdown(
        _("Nearest in all {width} dimensions and over all {rows:,} rows, whatever the map shows:").format(
            width=lm.config.d_model, rows=lm.config.vocab_size
        )
    )
    columns = st.columns(2)
    for column, found, title, key in (
        (columns[0], by_cosine, _("cosine"), "cosine"),
        (columns[1], by_dot, _("dot product"), "dot"),
    ):
        with column:
            page.figure(
                figures.ranked(found.scores.numpy(), labels_of(lm, found.ids.tolist()), title=title),
                f"embedding-map-{key}",
                _("The rows most similar to the token's row: {title}.").format(title=title),
            )


def _table(
    lm: LanguageModel,
    ids: list[int],
    token: int,
    table: Tensor,
    places: np.ndarray,
    titles: list[str],
    colours: Colours,
    lengths: Tensor,
) -> None:
    picked = set(st.session_state.get(_PICKED, ()))
    rows = [index for index, other in enumerate(ids) if other in picked] or list(range(len(ids)))
    if len(rows) < len(ids) or picked:
        st.markdown(
            _("**Tokens selected: {n}.** The table lists only these. Reset shows all again.").format(n=len(rows))
        )
    likeness = cosine(table[[ids[index] for index in rows]], table[token]).numpy()
    name = _("component {n}") if titles else _("axis {n}")
    page.numbers_table(
        pd.DataFrame(
            {
                _("token#id"): [label_of(lm, ids[index]) for index in rows],
                _("group"): [sample.group_of(colours, index) for index in rows],
                **{name.format(n=axis + 1): places[rows, axis] for axis in range(places.shape[1])},
                _("length of the row"): lengths[rows].numpy(),
                _("cosine to the chosen"): likeness,
            }
        ),
        "embedding-map",
        {_("length of the row"): "number", _("cosine to the chosen"): "number"},
    )
