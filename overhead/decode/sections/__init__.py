"""The page of decoded tokens, and their row on the front page."""

from overhead.report.core.page_list import register_page

register_page(
    "decode",
    "Decoding tokens",
    20,
    "What a token of a language model costs through each stack, what each fusion of dispatches saves, what one "
    "dispatch costs in a real program, and from which batch on overhead stops mattering.",
)

from overhead.decode.sections import decode_summary as decode_summary, decoding as decoding  # noqa: E402
