"""Page views: the query form with its cost, answers, history, declared tables, and budget."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dpsql.answer.declared_facts import facts_of, whose
from dpsql.core.ledger.filters import RemainingBudget
from dpsql.core.loss import show
from dpsql.errors import DPSQLError, InvalidArgument
from dpsql.owner.access import Grant
from dpsql.remote.facts import DeclaredTables, cost_of, quote_of, remaining_of
from dpsql.remote.server.guard import body_of, in_json
from dpsql.remote.server.job import Job
from dpsql.remote.server.pages.ask_form import AskForm, Price, fields_of, left_in_words
from dpsql.remote.server.pages.door import FORM, Pages
from dpsql.remote.server.pages.tables import PageTable, shortened
from dpsql.remote.server.plot_process import FORMS, SVG, answer_of
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.service import seen_within
from dpsql.schema.columns import ColumnSchema
from dpsql.session.advice import Place, reworded

LONGEST_FACTS = 600
"""Characters of a column's declared facts: key lists may be long."""
PATIENCE = 10.0
"""Seconds that a request waits for an answer before it returns the waiting page."""


@dataclass
class Trouble:
    """A refusal as the shell shows it: class and message, the line with its caret, and the hint."""

    word: str
    message: str
    caret: str
    hint: str

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Trouble:
        """Return a problem, worded for a page."""
        about = said.get("about") or {}
        hint = reworded(str(about.get("hint elsewhere", said.get("hint", ""))), Place.PAGE)
        return cls(str(said["title"]), str(said["detail"]), str(said.get("caret") or ""), hint)

    @classmethod
    def of_error(cls, error: DPSQLError) -> Trouble:
        return cls(type(error).__name__, error.message, "", reworded(error.hint, Place.PAGE))


async def ask_page(pages: Pages, _request: Request, grant: Grant) -> Response:
    """Show an empty form."""
    return await _form(pages, grant, AskForm.new())


async def _form(
    pages: Pages,
    grant: Grant,
    asked: AskForm,
    status: int = 200,
    *,
    price: Price | None = None,
    trouble: Trouble | None = None,
    explanation: str = "",
    note: str = "",
) -> Response:
    whole, left = await _budget(pages, grant)
    return pages.page(
        "ask",
        status,
        analyst=grant.analyst,
        here="ask",
        asked=asked,
        price=price,
        trouble=trouble,
        explanation=explanation,
        note=note,
        budget=left_in_words(left, whole),
    )


async def _budget(pages: Pages, grant: Grant) -> tuple[str, RemainingBudget]:
    """Return the share's epsilon in words, and the remaining budget."""
    said = await _told(pages, grant, "budget")
    return show(Fraction(said["epsilon"])), remaining_of(said["remaining"])


async def _told(pages: Pages, grant: Grant, operation: str, **words: Any) -> dict[str, Any]:
    status, said = await pages.service.plan(grant, operation, **words)
    if status != 200:
        raise Problem(500)
    return said


async def price_page(pages: Pages, request: Request, grant: Grant) -> Response:
    """Show the submitted form, with the cost and the explanation of the query; return only the cost to a script."""
    asked = AskForm.of(fields_of(await body_of(request, FORM)))
    script = request.headers.get("accept", "").partition(",")[0].strip() == "application/json"
    try:
        price = await _price(pages, grant, asked)
    except InvalidArgument as error:
        return await _refused(pages, grant, asked, Trouble.of_error(error), 400, script=script)
    if isinstance(price, Trouble):
        return await _refused(pages, grant, asked, price, 400, script=script)
    if script:
        return in_json({"line": price.line, "button": price.button, "quoted": price.quoted, "warning": price.warning})
    _, said = await pages.service.plan(grant, "explain", terms=asked.terms())
    return await _form(pages, grant, asked, price=price, explanation=str(said.get("text_without_budget", "")))


async def _refused(
    pages: Pages, grant: Grant, asked: AskForm, trouble: Trouble, status: int, *, script: bool
) -> Response:
    if not script:
        return await _form(pages, grant, asked, status, trouble=trouble)
    words = {"word": trouble.word, "message": trouble.message, "caret": trouble.caret, "hint": trouble.hint}
    return in_json({"trouble": words})


async def _price(pages: Pages, grant: Grant, asked: AskForm) -> Price | Trouble:
    """Return the cost of the form's query. Raises InvalidArgument for an invalid field."""
    terms = asked.terms()
    status, said = await pages.service.plan(grant, "prices", batch=([terms], False))
    if status != 200:
        return Trouble.of(said)
    whole, _ = await _budget(pages, grant)
    return Price.of(terms, quote_of(said["prices"][0]), whole)


async def ask(pages: Pages, request: Request, grant: Grant) -> Response:
    """Charge and answer a query whose cost was shown; otherwise show the cost."""
    asked = AskForm.of(fields_of(await body_of(request, FORM)))
    try:
        terms = asked.terms()
    except InvalidArgument as error:
        return await _form(pages, grant, asked, 400, trouble=Trouble.of_error(error))
    status, said = await pages.service.plan(grant, "prices", batch=([terms], False))
    if status != 200:
        return await _form(pages, grant, asked, int(status), trouble=Trouble.of(said))
    quote = quote_of(said["prices"][0])
    if not asked.promised(terms, quote.cost) and not await pages.service.was_asked(grant, asked.key(terms)):
        whole, _ = await _budget(pages, grant)
        note = "This is another question, or another price, than was shown. Nothing was asked yet."
        return await _form(pages, grant, asked, price=Price.of(terms, quote, whole), note=note)
    job = await pages.service.submit(grant, asked.key(terms), terms)
    await seen_within(job, PATIENCE)
    if not job.seen.is_set() or job.status == 200:
        return RedirectResponse(f"/answers/{job.id}", 303)
    problem = json.loads(job.content)
    if problem.get("about", {}).get("ask") == "explain":
        _, said = await pages.service.plan(grant, "explain", terms=terms)
        return await _form(pages, grant, asked, explanation=str(said.get("text", "")))
    if problem.get("charged"):
        return RedirectResponse(f"/answers/{job.id}", 303)
    return await _form(pages, grant, asked, job.status, trouble=Trouble.of(problem))


async def rehearse(pages: Pages, request: Request, grant: Grant) -> Response:
    """Show an answer over synthetic rows, which is free and has no link."""
    asked = AskForm.of(fields_of(await body_of(request, FORM)))
    try:
        terms = asked.terms()
    except InvalidArgument as error:
        return await _form(pages, grant, asked, 400, trouble=Trouble.of_error(error))
    status, said = await pages.service.plan(grant, "rehearse", terms=terms)
    if status != 200:
        return await _form(pages, grant, asked, status, trouble=Trouble.of(said))
    return _answer_page(pages, grant, said, asked)


async def answer(pages: Pages, request: Request, grant: Grant) -> Response:
    """Show an answer, when it may be seen."""
    job = await _job(pages, request, grant)
    if not job.seen.is_set():
        response = pages.page("waiting", 202, analyst=grant.analyst, sql=job.message["terms"]["sql"])
        response.headers["Refresh"] = "1"
        return response
    said, asked = json.loads(job.content), _asked_of(job)
    if job.status != 200:
        trouble = Trouble.of(said)
        paid = [PageTable.of(answer_of(each)) for each in said.get("answers", ())]
        words = {"trouble": trouble, "paid": paid, "charged": bool(said.get("charged")), "asked": asked}
        return pages.page("failed", job.status, analyst=grant.analyst, **words)
    terms = {word: value for word, value in job.message["terms"].items() if word != "fresh"}
    status, made = await pages.service.plan(grant, "explain", terms=terms)
    explanation = str(made["text_without_budget"]) if status == 200 else ""
    return _answer_page(pages, grant, said, asked, name=job.id, explanation=explanation)


def _answer_page(
    pages: Pages, grant: Grant, said: Mapping[str, Any], asked: AskForm, *, name: str = "", explanation: str = ""
) -> Response:
    result = answer_of(said)
    _, panels = result._plot_parts(0.95)
    drawn = bool(name) and bool(panels) and len(result) > 0
    return pages.page(
        "answer",
        analyst=grant.analyst,
        name=name,
        shown=PageTable.of(result),
        steps=[PageTable.of(each) for each in result.answers],
        asked=asked,
        heading=result._heading,
        drawn=drawn,
        drawn_of=", ".join(panel.name[:60] for panel in panels[:6]),
        explanation=explanation,
    )


async def _job(pages: Pages, request: Request, grant: Grant) -> Job:
    """Return the query of the requested id. Raises Problem for unknown ids and those of other analysts."""
    job = await pages.service.find(grant, request.path_params["id"])
    if job is None:
        raise Problem(404, hint="Answers that were paid for are in History.")
    return job


def _asked_of(job: Job) -> AskForm:
    """Return the form that would repeat this query."""
    terms = job.message["terms"]
    fields = {
        word: _typed(terms[word]) for word in ("sql", "epsilon", "delta", "rho", "error", "confidence") if word in terms
    }
    fields["mechanism"] = terms.get("mechanism", "auto")
    fields["params"] = "\n".join(
        f"{name} = {_typed(value, quoted=True)}" for name, value in terms.get("params", {}).items()
    )
    return AskForm.new(fields)


def _typed(value: Any, *, quoted: bool = False) -> str:
    """Format a value as a person types it."""
    if isinstance(value, str) and quoted:
        return "'" + value.replace("'", "''") + "'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:.15g}" if isinstance(value, float) else str(value)


async def file_of(pages: Pages, request: Request, grant: Grant) -> Response:
    """Return the answer as a file, or as a plot."""
    job, form = await _job(pages, request, grant), request.path_params["form"]
    if not job.seen.is_set() or job.status != 200 or (form not in FORMS and form != "svg"):
        raise Problem(404)
    try:
        content = await pages.service.drawing.written(job.content, form)
    except InvalidArgument as error:
        raise Problem(404, detail=error.message) from None
    if form == "svg":
        return Response(content, media_type=SVG)
    headers = {"Content-Disposition": f'attachment; filename="answer-{job.id[:8]}.{form}"'}
    return Response(content, media_type=FORMS[form], headers=headers)


async def history(pages: Pages, _request: Request, grant: Grant) -> Response:
    """Show the paid queries, the newest first, with links to available answers."""
    said = await _told(pages, grant, "history")
    links = await pages.service.answers_at_hand(grant)
    rows = []
    for each in reversed(said["answers"]):
        cost = cost_of(each["cost"])
        fields = {"sql": each["sql"], "mechanism": "auto"}
        coins = {"rho": cost.rho} if cost.epsilon is None else {"epsilon": cost.epsilon}
        fields |= {word: show(value, 15) for word, value in {**coins, "delta": cost.delta}.items() if value}
        time = each["time"][:19].replace("T", " ")
        rows.append(
            {"time": time, "sql": each["sql"], "cost": str(cost), "id": links.get(each["number"], ""), "fields": fields}
        )
    return pages.page("history", analyst=grant.analyst, here="history", rows=rows)


async def tables(pages: Pages, _request: Request, grant: Grant) -> Response:
    """Show the declared facts of the readable tables."""
    declared = DeclaredTables.of(await _told(pages, grant, "tables"))
    shown = [
        {"name": each.name, "whose": whose(each), "columns": [_facts_of(column) for column in each.columns]}
        for each in declared.tables.values()
    ]
    return pages.page("tables", analyst=grant.analyst, here="tables", tables=shown)


def _facts_of(column: ColumnSchema) -> tuple[str, str, str]:
    name, kind, facts = facts_of(column)
    return shortened(name), kind, shortened(facts, LONGEST_FACTS)


async def budget(pages: Pages, _request: Request, grant: Grant) -> Response:
    """Show the share, and what is spent of it and left."""
    said = await _told(pages, grant, "budget")
    whole, spent = Fraction(said["epsilon"]), Fraction(said["spent"]["epsilon"])
    left = remaining_of(said["remaining"])
    rows = [
        ("share", f"epsilon {show(whole)}, delta {show(Fraction(said['delta']))}"),
        ("spent", f"epsilon {show(spent, up=True)}, delta {show(Fraction(said['spent']['delta']), up=True)}"),
        ("left for the next query", str(left)),
        ("costs add up by", said["accountant"]),
        ("the token ends", grant.expires[:16].replace("T", " ") + " UTC"),
        ("tables", ", ".join(grant.tables)),
    ]
    share = float(left.epsilon / whole) if whole else 0.0
    return pages.page(
        "budget", analyst=grant.analyst, here="budget", rows=rows, share=round(min(1.0, max(0.0, share)), 4)
    )


async def words(pages: Pages, _request: Request, grant: Grant) -> Response:
    """Return the completions of a query: declared names and SQL keywords, never data."""
    return in_json(await _told(pages, grant, "vocabulary"))
