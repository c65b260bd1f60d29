"""Names of images, whatever is written: refused in a sentence, or with one long form that stays."""

from hypothesis import given
from hypothesis import strategies as st

from trainshed.core.supplies.image import canonical, familiar, parse, refusal

WORDS = st.text(alphabet="ab0.:/@_-A[] \n\x00é", max_size=30)
PARTS = st.from_regex(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*", fullmatch=True)


@given(st.one_of(st.text(), WORDS))
def test_any_text_is_refused_or_has_one_long_form(text: str) -> None:
    sentence = refusal(text)
    if sentence is not None:
        assert sentence.startswith("Image '") and sentence.endswith(".")
        return
    whole = canonical(text)
    assert canonical(whole) == whole == canonical(familiar(whole))
    assert not set(whole) & set(" \n\x00?#%&") and ".." not in whole.split("/")
    assert whole in parse(text).places


@given(
    st.lists(PARTS, min_size=1, max_size=4),
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True),
)
def test_what_the_grammar_allows_is_a_name(parts: list[str], tag: str) -> None:
    name = "registry.example:5000/" + "/".join(parts)
    if len(name) <= 255:
        assert canonical(f"{name}:{tag}") == f"{name}:{tag}"
