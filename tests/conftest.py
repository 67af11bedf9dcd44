"""One thread per test process, as in every rank of a job, and three processes per core: many tests wait."""

import gc
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

gc.disable()  # until the tests are collected: modules and tests stay, and to look through them again and again is slow
# No test fails because the machine is busy. Everything (`-m ""`) tries the usual hundred examples of each property.
_EXAMPLES = 100 if "" in sys.argv or os.environ.get("SECURE_KG_EXAMPLES") == "all" else 40
if _EXAMPLES == 100:
    os.environ["SECURE_KG_EXAMPLES"] = "all"  # for the processes of pytest-xdist, which have no arguments
hypothesis.settings.register_profile("secure-kg", deadline=None, max_examples=_EXAMPLES)
hypothesis.settings.load_profile("secure-kg")
# Folders of tests lie in memory where there is room: what a run writes is flushed to the disk, and tests wait for that.
_MEMORY, _ROOM = "/dev/shm", 4 << 30
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Jobs that tests start in folders of their own run this project, and not another copy that happens to be installed.
_PLACES = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PLACES))
_MOST_PROCESSES = 8
_CASES = 1
"""So many cases of a test that holds whole sessions are in `make test`, and of all further ones every third."""
_ONE_OF_EACH = re.compile(r"test_comes_out_as_promised")
"""Whose cases are chosen already: one for each claim of SECURITY.md."""
_REPETITIONS = re.compile(
    "|".join(
        (
            # Of each kind of case below, `make test` runs some; `make test-all` runs every one of them.
            r"test_if_idle_clients_had_another_commitment",
            r"test_a_continued_client_takes_part_again",
            r"test_a_record_in_another_order_is_found_by_receipts_and_without",
            r"test_crypten_(imports_and_its_converters_refuse|leaves_pykeen_importable)",
            r"test_pykeen_knows_every_listed_name",
            r"test_the_gross_leak_is_caught_and_a_slight_one_is_not",
            r"test_the_figure_of_nations",
            r"test_the_statement_is_within_the_budget\[0",
            r"test_renyi_and_loss_distribution_agree_and_the_smaller_is_taken",
            r"test_a_clients_round_imports_no_compiler_of_torch",
            r"test_a_client_does_load_it",
            r"test_entire_is_interrupted_in_one_line_and_resumed",
            r"test_no_protocol_is_told_from_its_simulation\[(cheated-|psu-names|holders)",
            r"test_every_broken_variant_is_told_from_the_simulation\[(psu|holders|secret|secagg-(short|reused|no-masks))",
            r"test_every_broken_count_is_told_from_the_simulation\[(unit|small|common)-vectors",
            r"test_every_broken_batch_is_told_from_the_simulation\[scores-topk-client, (equal|unmasked)",
            r"test_(any_batch_is_ranked_as_in_clear|an_honest_session_has_no_high_finding\w*)\[(1-)?paillier",
            r"test_a_mistake_gets_one_line\[\d-options(2|6|8)\D",
            r"test_a_fused_step_is_the_step_of_autograd\[[2-9]-",
            r"test_a_mistake_gets_one_line\[\d-options(1?[13579]|4|16)\D",
            r"test_without_mpirun_the_job_starts_itself\[module0",
            r"test_real_runs_go_on_and_are_not_run_twice",
            r"test_a_folder_and_json_to_standard_output",
            r"test_up_to_four_signing_clients_fall_silent_in_every_way\[n=4, t=3, m=3",
            r"test_a_run_that_broke_off_and_went_on_without_one_client\[secret",
            r"test_clients_that_are_slow_and_come_back\[secret",
            r"test_a_round_in_which_all_drawn_clients_are_slow\[secret",
            r"test_an_honest_job_that_is_resumed_without_a_client_is_not_accused\[secret",
            r"test_test_results_of_the_same_models_are_not_opened_over_other_clients\[secret",
            r"test_a_client_that_dies_at_any_message_costs_that_client_only\[\d*[13579]\]",
            r"test_a_run_in_which_a_client_dies_is_audited\[\d*[13579]\]",
            r"test_up_to_four_clients_fall_silent_in_every_way\[n=4, t=([24]|3, m=3)",
            r"test_five_signing_clients_fall_silent_at_mixed_steps\[n=5, t=3",
            r"test_a_tag_with_different_weights_in_its_cells_fails\[[1-9]\d*-[12]\]",
            r"test_a_union_as_large_as_the_bound_is_nearly_always_peeled\[(1|14541)-",
            r"test_writes_the_figures_and_shows_a_table\[RotatE",
            r"test_pykeen_goes_on_from_epoch_to_epoch\[False",
            r"test_a_broken_run_resumes_to_the_same_result\[[125]-",
            r"test_a_client_falls_silent_and_comes_back",
            r"test_a_(broken_variant_is_caught_by_its_check|whole_run_of_a_variant_comes_to_its_end)\[short-mask-keys",
            r"test_requests_of_a_group_that_skips_positions_of_nobody",
            r"test_a_client_killed_at_the_end_does_not_hold_the_job\[(before finalizing-idle|while finalizing-real)",
            r"test_unread_answers_to_one_sum_are_no_answers_to_another\[secret",
            r"test_a_killed_client_costs_that_client_only\[started by itself",
            r"test_measures_real_runs_side_by_side\[1",
            r"test_what_recipes_add_works\[all together",
            r"test_what_the_program_of_a_server_does_not_do_is_found\[masked-given_up_early",
            r"test_a_total_that_did_not_get_through_accuses_nobody\[paillier",
        )
    )
)
"""Cases that repeat, for another protocol, moment or option, what `make test` checks as well."""
_WHOLE_SESSIONS = re.compile(
    "/test_("
    "framed_score_servers|score_audits|cheating_in_scores|encrypted_simulators|encrypted_batches|backends|cheated|bfv|"
    "private_union|union_names|twins_misbehaving|sum_check|covering|equivocating_askers|hidden|kge|simulators|"
    "shamir|geometry|ranking|holder_matrices|twins_dropouts|questions|trouble_in_questions|exact_questions|ask|"
    "hidden_in_audits|hostile_group|lookups|query_learner|query_federation|query_jobs|gqe_command|exact_questions|"
    "one_set_of_clients|announced_batches|words_of_clients|servers_view|answers_that_combine|question_leaks_command|"
    "cheating_in_questions|score_views|client_views|reproduce_command|secagg_dropouts|secagg_damage|hostile_servers|"
    "score_dropouts|selection_dropouts|optional_packages|interpolation|extraction|replay|replay_in_trouble"
    r")\.py"
)
"""Modules that hold whole sessions or train: each test takes a while, and `make test-fast` leaves them out."""
_NOT_IN_THE_INNER_LOOP = re.compile(
    "/test_("
    "dependency_direction|sizes|documents|new_aggregation|attack|dp_audit|staged_federations|accountant|scores_command|"
    "private_commands|private_table|dpkge|confidential|confidential_figures|spending|announced_openings|trees|"
    "holder_totals|group|optional_packages|supply_chain|wheel|partition|simulate|gradient_rounding|gradients|"
    "dp_audit_paths|hostile_files|keygen|mistakes|own_graphs|notebooks|demo|doctor|compare|completion|reading_command|"
    "rdf"
    r")\.py"
)
"""Modules that take a second or more and run in `make test` with all their cases."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half of the time of `mpirun` jobs and of slow clients is waiting: with a process per core, cores stand idle.

    Where nobody waits (`make test-fast`) there is one per core: each of them reads all test modules first.
    """
    cores = len(os.sched_getaffinity(0))
    return min(_MOST_PROCESSES, cores if config.option.numprocesses == "logical" else 3 * cores)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Mark repetitions slow and whole sessions long, in one place: which of them fit depends on how long all take."""
    cases: Counter[str] = Counter()
    for item in items:
        if _REPETITIONS.search(item.name):
            item.add_marker(pytest.mark.slow)
        if _WHOLE_SESSIONS.search(item.nodeid):
            item.add_marker(pytest.mark.long)
        marks = {*_marks(item)}
        if "long" in marks and "slow" not in marks and not _ONE_OF_EACH.search(item.name):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] > _CASES and cases[test] % 3:
                item.add_marker(pytest.mark.slow)
        if _NOT_IN_THE_INNER_LOOP.search(item.nodeid):
            item.add_marker(pytest.mark.long)
    yield
    items[:] = _long_ones_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def pytest_collection_finish() -> None:
    """What exists by now stays until the end: the collector need not look at it after every few thousand objects."""
    gc.freeze()
    gc.enable()


def _long_ones_first(items: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """Modules with long tests at the beginning of each process's part, so that no process is left with one at the end.

    Every process begins with an equal part of the list, and takes from the ends of others' when it has no more.
    """
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    long_ones = {
        name: part for name, part in modules.items() if any({"mpi", "long"} & {*_marks(item)} for item in part)
    }
    parts: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for number, module in enumerate(long_ones.values()):
        parts[number % processes].extend(module)
    rest = [item for name, module in modules.items() if name not in long_ones for item in module]
    for number, part in enumerate(parts):
        room = max(0, len(items) * (number + 1) // processes - len(items) * number // processes - len(part))
        part.extend(rest[:room])
        rest = rest[room:]
    return [item for part in parts for item in part] + rest


def _marks(item: pytest.Item) -> Iterator[str]:
    return (mark.name for mark in item.iter_markers())
