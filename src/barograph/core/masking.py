r"""Mask secrets in text that leaves the machine.

**Theory of operation.** `RULES` is one table: what a kind of secret looks like, where it may begin,
and an example. A match gives way to a token such as `[masked jwt 128+]`, which tells the kind and
the length class: the largest power of two that is not longer. Texts are long and secrets are rare,
so a rule looks for its literal beginnings first and tries its pattern only there.

**Invariants.** Masking is idempotent. JSON stays JSON of the same shape: a rule takes only
characters that may stand inside one JSON string, whole escapes included, and what it puts there
needs no escape. That holds for JSON inside of JSON, too, where a line break is spelled `\n`, whose
letter must neither hide that a word begins nor be taken for the first of it. Time is linear in the
text, whatever it holds: repetitions that can fail are bounded.

**Out of scope.** A secret without a form of its own, such as a password in plain prose, cannot be
told from other text. Masks are a net under careless logs, not a promise.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

_ESCAPED: Final = r"(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\)(?![bfnrtu])"
_BEGINS: Final = rf"(?:(?<![A-Za-z0-9_\\])|{_ESCAPED})"
_BASE64: Final = r"(?:[A-Za-z0-9_+=.~-]|\\*/)"
_MIXED: Final = r"(?=[^\s\"'\\]{0,200}\d)(?=[^\s\"'\\]{0,200}[A-Za-z])"
_PEM_NAME: Final = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?"
_PEM_TEXT: Final = r"(?:(?!-----)[A-Za-z0-9+/=\s:,.()-]|\\+[nrt/])"
_PEM_LINE: Final = r"(?:\s|\\+[nrt])*(?:[A-Za-z0-9+=]|\\*/){16,}"
_KEY_OF: Final = "|".join(
    rf"(?<={word}{joint})"
    for word in ("api", "access", "account", "private")
    for joint in ("", "[_-]")
)
_NAME: Final = (
    rf"(?i:(?:{_KEY_OF})key|secret|token|passw(?:or)?d|passphrase|credential)[A-Za-z0-9_-]{{0,32}}"
)


class Rule(Struct, frozen=True, kw_only=True):
    """One kind of secret.

    Attributes:
        name: as it stands in the mask.
        what: what it covers.
        begins: what a match begins with, literally; empty where it may begin with anything.
        pattern: its form; the group `secret`, where there is one, is what is masked.
        example: a made-up secret of that form.
        optional: whether it is masked only when asked for.
    """

    name: str
    what: str
    begins: tuple[str, ...] = ()
    pattern: str
    example: str
    optional: bool = False


def _cased(*words: str) -> tuple[str, ...]:
    """The usual spellings of words."""
    return tuple(dict.fromkeys(form for w in words for form in (w, w.capitalize(), w.upper())))


RULES: Final = (
    Rule(
        name="private-key",
        what="PEM and PGP private keys, also without their end",
        begins=("-----BEGIN ",),
        pattern=(
            rf"-----BEGIN {_PEM_NAME}-----"
            rf"(?:{_PEM_TEXT}{{0,32768}}-----END {_PEM_NAME}-----|(?:{_PEM_LINE})+)"
        ),
        example=(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7\n"
            "pYV4Uqk2c3ZyMGZZ\n-----END RSA PRIVATE KEY-----"
        ),
    ),
    Rule(
        name="jwt",
        what="JSON web tokens",
        begins=("eyJ",),
        pattern=(
            rf"{_BEGINS}eyJ[A-Za-z0-9_-]{{8,4096}}\.[A-Za-z0-9_-]{{8,8192}}\.[A-Za-z0-9_-]{{0,4096}}"
        ),
        example=(
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
            "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
        ),
    ),
    Rule(
        name="aws-key",
        what="AWS access key ids; a secret access key counts as `named`",
        begins=("AKIA", "ASIA", "ABIA", "ACCA"),
        pattern=rf"{_BEGINS}A[KSBC]IA[A-Z0-9]{{16}}(?![A-Za-z0-9_])",
        example="AKIAQ3EGRVWTZ5LMNOPX",
    ),
    Rule(
        name="api-key",
        what=(
            "keys of a known form: Anthropic and OpenAI (`sk-`), GitHub, GitLab, Google, Slack, "
            "Stripe, Hugging Face, npm, PyPI, SendGrid; Google's client secrets"
        ),
        begins=(
            *("sk-", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "AIza"),
            *(
                "xox",
                "xapp-",
                "GOCSPX-",
                "sk_live_",
                "sk_test_",
                "rk_live_",
                "rk_test_",
                "hf_",
                "npm_",
                "pypi-",
                "SG.",
            ),
        ),
        pattern=(
            rf"{_BEGINS}(?:sk-[A-Za-z0-9_-]{{16,}}|gh[opsur]_[A-Za-z0-9]{{20,}}"
            r"|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}"
            r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|GOCSPX-[A-Za-z0-9_-]{16,}"
            r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
            r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
            r"|SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,})"
        ),
        example="sk-ant-api03-Qm9ndXMtS2V5LUZvci1Eb2Nz-AbCdEfGh",
    ),
    Rule(
        name="bearer",
        what=(
            "what follows `Bearer` and has a letter and a digit in it; after `Authorization:`, "
            "what follows `Bearer`, `Basic`, `Token`, `ApiKey` or `Negotiate`, whatever it is"
        ),
        begins=_cased("bearer", "authorization"),
        pattern=(
            r"(?:(?i:authorization\\*[\"']?\s{0,4}[:=]\s{0,4}\\*[\"']?"
            r"(?:bearer|basic|token|apikey|negotiate)\s{1,4})"
            rf"|(?i:bearer)\s{{1,4}}{_MIXED}(?={_BASE64}{{12,}}))(?P<secret>{_BASE64}{{8,}})"
        ),
        example="Bearer 8f3kQ0vTzR5yW2bN7mX4",
    ),
    Rule(
        name="url-password",
        what="the password in `scheme://user:password@host`",
        begins=("://",),
        pattern=r"://[^\s/:@\"'\\\[\]]{0,64}:(?P<secret>[^\s/\"'\\\[\]]{3,256})(?=@)",
        example="postgres://app:tr0ub4dor@db.internal/app",
    ),
    Rule(
        name="named",
        what=(
            "values of eight characters or more, a letter and a digit among them, that are given "
            "to a name such as `api_key`, `secret_access_key`, `token` or `password`"
        ),
        begins=_cased("key", "secret", "token", "passw", "passphrase", "credential"),
        # in JSON a quoted name has a quoted value: without quotes it is a number, which stays
        pattern=(
            rf"{_NAME}(?:\\*[\"']\s{{0,4}}[:=]\s{{0,4}}\\*[\"']"
            rf"|\s{{0,4}}[:=]>?\s{{0,4}}(?:\\*[\"'])?){_MIXED}(?P<secret>{_BASE64}{{8,}})"
        ),
        example='"aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    ),
    Rule(
        name="email",
        what="e-mail addresses",
        pattern=(
            rf"(?:(?<![A-Za-z0-9._%+\\-])|{_ESCAPED})"
            r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
        ),
        example="ada.lovelace@example.org",
        optional=True,
    ),
)

ALWAYS: Final = tuple(rule for rule in RULES if not rule.optional)
"""The rules that hold unless others are asked for."""

MARK: Final = "[masked "
"""How every mask begins."""


def mask_text(text: str, rules: Sequence[Rule] = ALWAYS) -> str:
    """The text with every secret in it masked.

    >>> mask_text("export KEY=AKIAQ3EGRVWTZ5LMNOPX")
    'export KEY=[masked aws-key 16+]'
    """
    while True:
        masked = text
        for rule in rules:
            masked = _apply(rule, masked)
        # a mask may end the word that hid where the next secret begins
        if masked == text:
            return text
        text = masked


def mask_values(value: Any, rules: Sequence[Rule] = ALWAYS) -> Any:
    """The same for every text in lists and objects; names of fields stay."""
    match value:
        case str():
            return mask_text(value, rules)
        case list() | tuple():
            return [mask_values(item, rules) for item in value]
        case dict():
            return {key: mask_values(item, rules) for key, item in value.items()}
        case _:
            return value


def _apply(rule: Rule, text: str) -> str:
    pieces, end = [], 0
    for start, stop in _secrets(rule, text):
        size = 1 << ((stop - start).bit_length() - 1)
        pieces += [text[end:start], f"{MARK}{rule.name} {size}+]"]
        end = stop
    return "".join((*pieces, text[end:])) if pieces else text


def _secrets(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    pattern, group = _compiled(rule.pattern)
    if not rule.begins:
        yield from (found.span(group) for found in pattern.finditer(text))
        return
    end = 0
    for start in sorted(at for word in rule.begins for at in _places(text, word)):
        if start >= end and (found := pattern.match(text, start)):
            yield found.span(group)
            end = found.end()


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


@cache
def _compiled(pattern: str) -> tuple[re.Pattern[str], int]:
    compiled = re.compile(pattern)
    return compiled, compiled.groupindex.get("secret", 0)
