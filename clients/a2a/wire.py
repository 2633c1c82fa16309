"""JSON-RPC over HTTP as it is on the wire, and the lines that tell how each check went."""

import json
import os
import sys

import httpx

URL = sys.argv[1].rstrip("/")
PATIENCE = 20
# What is shown at the door, if anything has to be.
HEADERS = {
    header: before + os.environ[name]
    for name, header, before in [
        ("CHIO_BEARER", "Authorization", "Bearer "),
        ("CHIO_CAPABILITY", "X-Chio-Capability", ""),
    ]
    if name in os.environ
}
CLIENT = httpx.Client(headers=HEADERS, timeout=PATIENCE, follow_redirects=False)


class Odd(Exception):
    """Something that should not be."""


def check(holds, seen):
    if not holds:
        raise Odd(json.dumps(seen, default=str))
    return seen


def get(path, **headers):
    return CLIENT.get(f"{URL}{path}", headers=headers)


def post(body, path="", **headers):
    """Sends what it is given, as it is, and answers the whole response."""
    headers = {"Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items() if value is not None
    }
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return CLIENT.post(f"{URL}{path}", content=content, headers=headers)


def call(method, params, number=1, path="", **headers):
    """One request; answers the envelope, which has to be one, and to be ours."""
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    response = post(body, path, **headers)
    answer = response.json()
    seen = [response.status_code, response.headers.get("content-type"), answer]
    whole = answer.get("jsonrpc") == "2.0" and ("result" in answer) != ("error" in answer)
    check(response.status_code == 200 and whole and answer.get("id") == number, seen)
    return answer


def result(*arguments, **options):
    answer = call(*arguments, **options)
    return check("result" in answer, answer)["result"]


def refusal(code, *arguments, **options):
    """The error of a request that has to be refused with this code."""
    error = call(*arguments, **options).get("error")
    return check(error and error["code"] == code and error.get("message"), error)


def run(checks):
    """Does every check, and ends with 0 only if each did what it should."""
    failed = False
    for work in checks:
        name = work.__name__.replace("_", " ")
        try:
            line = {"step": name, "ok": True, "detail": work()}
        except Exception as error:
            failed = True
            line = {"step": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}
        print(json.dumps(line, default=str), flush=True)
    sys.exit(1 if failed else 0)
