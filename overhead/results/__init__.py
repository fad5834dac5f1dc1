"""The types of the file and their bounds. ``loading/files.py`` reads and writes the files.

Two shapes hold the same run. A *journal* (``.jsonl``) grows while the run goes on, one line per event. A *fingerprint*
(``.json``) holds the figures without the raw samples. All times are nanoseconds. Decoding is strict and bounded.
"""

from overhead.results.journal_lines import (
    DiedLine as DiedLine,
    EndedLine as EndedLine,
    FailedLine as FailedLine,
    HeaderLine as HeaderLine,
    JournalLine as JournalLine,
    MissingLine as MissingLine,
    OmittedLine as OmittedLine,
    OneOffLine as OneOffLine,
    OpenedLine as OpenedLine,
    PeersLine as PeersLine,
    PlannedLine as PlannedLine,
    RoundLine as RoundLine,
    WindowLine as WindowLine,
    decode_line as decode_line,
    encode_line as encode_line,
)
from overhead.results.origin import Origin as Origin, formed as formed
from overhead.results.reason import (
    Reason as Reason,
    Why as Why,
    because as because,
    codes_of as codes_of,
    together as together,
)
from overhead.results.records import (
    Case as Case,
    Comparison as Comparison,
    Contention as Contention,
    Figure as Figure,
    Fingerprint as Fingerprint,
    Gpu as Gpu,
    LeftOut as LeftOut,
    Machine as Machine,
    MissingStack as MissingStack,
    Point as Point,
    ProcessorCost as ProcessorCost,
    Record as Record,
    Target as Target,
    Together as Together,
    Volatile as Volatile,
    WithFigures as WithFigures,
    scalar_text as scalar_text,
    schema as schema,
    to_builtins as to_builtins,
)
from overhead.results.value import (
    DifferentBoardsError as DifferentBoardsError,
    Value as Value,
    exactly as exactly,
    is_plausible as is_plausible,
    ratio as ratio,
    why_apart as why_apart,
)
from overhead.results.vocabulary import (
    ANCHORED_FROM as ANCHORED_FROM,
    BOARD as BOARD,
    KNOWN_APIS as KNOWN_APIS,
    METHOD_VERSION as METHOD_VERSION,
    SCHEMA_VERSION as SCHEMA_VERSION,
    UFUNC_LOOP as UFUNC_LOOP,
    VALUED as VALUED,
    Api as Api,
    Bound as Bound,
    Caller as Caller,
    Count as Count,
    Dependency as Dependency,
    EnvironmentVariables as EnvironmentVariables,
    Limit as Limit,
    LongText as LongText,
    Moment as Moment,
    Name as Name,
    Overlap as Overlap,
    Params as Params,
    Pattern as Pattern,
    Placement as Placement,
    Profile as Profile,
    Scalar as Scalar,
    Status as Status,
    Way as Way,
    WindowKind as WindowKind,
    same_figures as same_figures,
)
