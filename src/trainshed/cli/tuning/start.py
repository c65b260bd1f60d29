"""Starting a study of a program: pack its folder, ask for the study, send what is missing, follow it."""

import json

import click

from trainshed.cli import words as json_words
from trainshed.cli.failure import Misuse
from trainshed.cli.options import connect, violation_text
from trainshed.cli.order import SubmittedProgram, is_count
from trainshed.cli.pack import FolderListing
from trainshed.cli.submission import Unsure, any_gpu, option_of, packed, with_folder
from trainshed.cli.submit_options import SubmitWords
from trainshed.cli.trouble import EarlyError, say
from trainshed.cli.tuning.find_study import find_study
from trainshed.cli.tuning.follow_study import follow_study
from trainshed.cli.tuning.parameter import likely_mistakes
from trainshed.cli.tuning.request import TuneWords, option_of_study, study_body, study_spec
from trainshed.client import ApiError, Client, Json
from trainshed.client.code import Parcel


def start(options: SubmitWords, words: TuneWords) -> int:
    """All of it: the code to exit with."""
    if options.is_file:
        raise Misuse(
            f"{options.target}: tune takes a program",
            ["a study in a file: trainshed ai hp-tuning-jobs create --config FILE --display-name NAME"],
        )
    for remark in likely_mistakes(study_spec(words)["parameters"]):  # what is wrong is told before packing
        say(f"note: {remark}")
    with connect(options.url, options.project, options.location) as client:
        try:
            return _started(client, options, words)
        except Unsure:
            say("\ninterrupted while the study was submitted; whether it was, says: trainshed study ls")
            return 130


def _started(client: Client, options: SubmitWords, words: TuneWords) -> int:
    program = SubmittedProgram(options)
    program.check(options)
    listing = FolderListing(program.root)
    if options.has_places:
        from trainshed.cli.seek import seek

        seek(client, options)
    if is_count(options.gpu):
        options.gpu = any_gpu(client, options)
    priors = [str(find_study(client, called)["name"]) for called in words.warm_start]
    study_body(words, {"displayName": "", "jobSpec": {}}, priors)  # wrong points are told before packing
    parcel = packed(program.root, listing, options, program.script)
    if unused := program.unused_requirements(options):
        say(f"note: {unused} is not installed; have it so with: --requirements {unused}")
    body = study_body(words, program.body(options, parcel.code), priors)
    if options.dry_run:
        click.echo(_text(body, as_json=options.as_json), nl=False)
        return 0
    study = _accepted(client, body, parcel, options, words)
    return _finished(client, study, options)


def _text(body: Json, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(body, indent=2) + "\n"
    import yaml

    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True)


def _accepted(client: Client, body: Json, parcel: Parcel, options: SubmitWords, words: TuneWords) -> Json:
    """The new study; what the server does not accept is told by the option that said it."""
    try:
        return with_folder(client, parcel, lambda key: client.studies().create(body, key=key))
    except ApiError as error:
        if not error.violations:
            raise
        details: list[str] = []
        for violation in error.violations:
            option = option_of_study(violation.field, words) or option_of(violation.field, options)
            details.append(f"{option}: {violation.description}" if option else violation_text(violation))
        raise EarlyError("the server does not accept this study", list(dict.fromkeys(details))) from error


def _finished(client: Client, study: Json, options: SubmitWords) -> int:
    called, name = json_words.identity(study), study.get("displayName", "")
    if options.detach:
        click.echo(json.dumps(study, indent=2) if options.as_json else called)
        say(f"submitted {name}; follow it with: trainshed study show -f {called}")
        return 0
    say(f"submitted {name} as study {called}")
    return follow_study(client, study, as_json=options.as_json)
