"""OpenAPI 3.1 description of the server, generated from its routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpsql.remote.server.messages import MOST_LISTED, MOST_PRICES
from dpsql.remote.server.problems import STATUSES
from dpsql.remote.server.requests import JSON, LONGEST_KEY, TERMS
from dpsql.version import __version__

Route = tuple[str, str, str, str, tuple[int, ...], tuple[str, ...]]
"""Method, path, purpose, the type of its body ("" for none), its own statuses, and the formats of its answers."""
_TYPES = {str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "number"}}
_ALWAYS = (400, 401, 403, 405, 406, 408, 414, 421, 429, 431, 500, 503)
_WITH_BODY = (413, 415)


def description(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the whole document."""
    paths: dict[str, Any] = {
        "/healthz": {"get": _open("Whether it is up")},
        "/openapi.json": {"get": _open("This description")},
    }
    for method, path, purpose, body, statuses, forms in routes:
        paths.setdefault(path, {})[method.lower()] = _operation(path, purpose, body, statuses, forms)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpsql", "version": __version__, "summary": "Questions with differential privacy"},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"query": _query(), "batch": _batch(), "problem": _problem()},
        },
    }


def _open(purpose: str) -> dict[str, Any]:
    ok = {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"summary": purpose, "responses": {"200": ok, **_problems((400, 403, 405, 408, 414, 421, 431, 500))}}


def _operation(path: str, purpose: str, body: str, statuses: tuple[int, ...], forms: tuple[str, ...]) -> dict[str, Any]:
    anchor = {"name": "Ledger-Anchor", "in": "header", "required": False, "schema": {"type": "string"}}
    operation: dict[str, Any] = {"summary": purpose, "security": [{"token": []}], "parameters": [anchor]}
    own = tuple(each for each in statuses if each >= 400)
    refusals = (*_ALWAYS, *own, *((*_WITH_BODY, 422) if body else ()))
    schemas = {each: {"schema": {"type": "object"} if each == JSON else {}} for each in forms}
    good = {
        str(each): {"description": "OK", "content": schemas if each == 200 else {JSON: schemas[JSON]}}
        for each in statuses
        if each < 400
    }
    operation["responses"] = {**good, **_problems(refusals)}
    if "{id}" in path:
        where = {"name": "id", "in": "path", "required": True}
        operation["parameters"].append({**where, "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"}})
        operation["responses"] |= _problems((404,))
    if path == "/v1/answers":
        for name, least, most in (("after", 0, 999_999_999), ("limit", 1, MOST_LISTED)):
            number = {"type": "integer", "minimum": least, "maximum": most}
            operation["parameters"].append({"name": name, "in": "query", "required": False, "schema": number})
    if 409 in statuses:
        key = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"}
        wait = {"type": "string", "examples": ["wait=10"]}
        operation["parameters"] += [
            {"name": "Idempotency-Key", "in": "header", "required": True, "schema": key},
            {"name": "Prefer", "in": "header", "required": False, "schema": wait},
        ]
    if body:
        schema = {"$ref": f"#/components/schemas/{body}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _problems(statuses: Iterable[int]) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/problem"}}}
    known = {*STATUSES, 422}
    return {str(each): {"description": "Refused", "content": content} for each in sorted({*statuses} & known)}


def _query() -> dict[str, Any]:
    moment = {
        "type": "object",
        "properties": {"date": {"type": "string"}, "timestamp": {"type": "string"}},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    scalar = {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, moment]}
    terms: dict[str, Any] = {name: _TYPES[kinds[0]] for name, kinds in TERMS.items()}
    return {
        "type": "object",
        "properties": {**terms, "params": {"type": "object", "additionalProperties": scalar}},
        "required": ["sql"],
        "additionalProperties": False,
    }


def _batch() -> dict[str, Any]:
    queries = {
        "type": "array",
        "items": {"$ref": "#/components/schemas/query"},
        "minItems": 1,
        "maxItems": MOST_PRICES,
    }
    return {
        "type": "object",
        "properties": {"queries": queries, "in_turn": {"type": "boolean"}},
        "required": ["queries"],
        "additionalProperties": False,
    }


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "hint": text,
            "charged": {"type": "boolean"},
        },
        "required": ["type", "title", "status", "detail", "charged"],
    }
