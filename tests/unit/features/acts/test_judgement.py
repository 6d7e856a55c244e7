"""What a statement asks of an act: by the places, code and commands that it names."""

import pytest

from pipeline.features.acts.act import read_act
from pipeline.features.acts.judgement import (
    Circumstances,
    Evidence,
    Statement,
    find_evidence,
)
from pipeline.features.acts.keys import list_act_keys, list_statement_keys
from pipeline.kernel.store.agent_sessions import Action, ActionType


def judge(text, tool, given, did=(), *, is_lesson=True):
    """Return the evidence, as an index would find it."""
    act, statement = read_act(tool, given, "/app"), Statement(text, is_lesson)
    if act is None or list_statement_keys(statement).isdisjoint(list_act_keys(act)):
        return None
    return find_evidence(statement, act, Circumstances(lambda: None, did))


def edit(text, file, new, old=""):
    return judge(text, "Edit", {"file_path": f"/app/{file}", "old_string": old, "new_string": new})


def run(text, command, did=()):
    return judge(text, "Bash", {"command": command}, did)


def make_action(kind, target, second):
    return Action(f"2026-01-01T00:00:{second:02}.000Z", "s1", None, "Bash", kind, target, ok=True)


@pytest.mark.parametrize(
    ("text", "file", "new"),
    [
        ("no print() in shop/, we have structlog. scripts/ is fine", "shop/cart.py", "print(total)"),
        ("kein malloc im treiber code (src/drv/), alles statisch", "src/drv/adc.c", "buf = malloc(64);"),
        ("no any in packages/*/src", "packages/api/src/a.ts", "let x: any = 1"),
        ("dayjs was thrown out, we use Temporal", "src/date.ts", "import dayjs from 'dayjs'"),
        ("httpx statt requests", "app/http.py", "import requests"),
        ("the job queue moved from celery to arq", "app/jobs.py", "from celery import task"),
        ("packages/ui must not import from apps/", "packages/ui/src/a.tsx", "import { x } from '../../../apps/web/x'"),
        ("images never :latest", "deploy/app.yaml", "image: redis:latest"),
        ("no hex colors in components", "web/Badge.module.css", ".a { color: #e4572e; }"),
        ("no TODO without a ticket number", "web/a.ts", "// TODO later"),
        ("errors get wrapped with %w, never %v", "api/a.go", 'fmt.Errorf("x: %v", err)'),
        ("never hard-code api keys or passwords", "app/a.py", "API_KEY = 'abcdef123456'"),
        ("comments in english only", "app/a.py", "# Werte werden hier noch einmal geprüft"),
        ("no time.Sleep in tests", "api/a_test.go", "time.Sleep(1)"),
    ],
)
def test_code_that_a_rule_forbids_concerns_it(text, file, new):
    assert edit(text, file, new) is Evidence.CODE


@pytest.mark.parametrize(
    ("text", "file", "new"),
    [
        ("no print() in shop/, we have structlog. scripts/ is fine", "scripts/fill.py", "print(total)"),
        ("no print() in shop/, we have structlog. scripts/ is fine", "shop/blueprint.py", "name = 'print'"),
        ("no any in packages/*/src", "apps/web/a.ts", "let x: any = 1"),
        ("no any in packages/*/src", "packages/api/src/a.ts", "// works in any browser"),
        ("no requests library, take httpx", "app/a.py", "def pending_requests(): ..."),
        ("css: tokens from packages/ui/tokens, no hex colors", "packages/ui/tokens/a.css", "--ink: #1d1d1b;"),
        ("no TODO without a ticket number", "web/a.ts", "// TODO(ORC-12): later"),
        ("no time.Sleep in tests", "api/server.go", "time.Sleep(1)"),
        ("use 127.0.0.1 not localhost in the config", "README.md", "open http://localhost:3000"),
        ("never hard-code api keys", "app/a.py", "API_KEY = os.environ['API_KEY']"),
        ("comments in english only", "app/a.py", "# the values are checked here once more"),
    ],
)
def test_an_act_that_keeps_a_rule_gets_silence(text, file, new):
    assert edit(text, file, new) is None


def test_code_that_an_edit_only_keeps_concerns_nothing():
    assert edit("no print()", "shop/a.py", "print(b)", "print(a)") is None


@pytest.mark.parametrize(
    ("text", "file", "concerns"),
    [
        ("clients/sdk is generated from openapi.yaml, not by hand", "clients/sdk/models.py", True),
        ("clients/sdk is generated from openapi.yaml, not by hand", "openapi.yaml", False),
        ("src/hal/ ist vom hersteller, da wird nix von hand geändert", "src/hal/uart.c", True),
        ("src/hal/ ist vom hersteller, da wird nix von hand geändert", "test/hal_fake/uart.c", False),
        ("never edit *.pb.go by hand", "api/user.pb.go", True),
        ("the config.yaml in deploy/ is generated, don't touch", "app/config.yaml", False),
    ],
)
def test_files_that_must_stay_concern_their_edits(text, file, concerns):
    assert edit(text, file, "b", "a") is (Evidence.FILE if concerns else None)


def test_a_new_file_is_permitted_where_the_rule_asks_for_one():
    rule = "dont touch merged migrations (migrations/versions/*), always write a new one"
    assert edit(rule, "migrations/versions/1.py", "b", "a") is Evidence.FILE
    assert judge(rule, "Write", {"file_path": "/app/migrations/versions/2.py", "content": "x"}) is None


def test_a_removed_name_concerns_the_rule_that_keeps_it():
    rule = "modules/network is pinned from other repos, don't rename outputs"
    assert edit(rule, "modules/network/out.tf", 'output "b_ids" {', 'output "a_ids" {') is Evidence.FILE
    assert edit(rule, "modules/network/out.tf", 'output "x" {}\noutput "a_ids" {', 'output "a_ids" {') is None


def test_a_thing_without_its_required_part_is_reported():
    rule = "every resource gets tags owner + cost_center"
    given = {"file_path": "/app/q.tf", "content": 'resource "aws_sqs_queue" "q" {}'}
    assert judge(rule, "Write", given) is Evidence.REQUIRED
    assert judge(rule, "Write", given | {"content": given["content"] + "cost_center = 1"}) is None


NO_PROD = "never run anything against the prod db (shop-prod-db, port 6543)"


@pytest.mark.parametrize(
    ("text", "command", "concerns"),
    [
        ("pnpm only, no npm / no yarn", "npm install zod", True),
        ("pnpm only, no npm / no yarn", "pnpm add zod", False),
        ("pnpm only, no npm / no yarn", "npm view zod versions", False),
        ("docker compose, nicht docker-compose", "docker-compose up -d", True),
        (
            "never run anything against the prod db (shop-prod-db, port 6543)",
            "psql -h shop-prod-db -c 'delete from a'",
            True,
        ),
        (
            "never run anything against the prod db (shop-prod-db, port 6543)",
            "psql -h localhost -c 'delete from a'",
            False,
        ),
        ("terraform apply only through Atlantis, never from the shell", "terraform apply", True),
        ("terraform apply only through Atlantis, never from the shell", "terraform validate", False),
        ("prod only via the github action, nobody deploys prod by hand", "kubectl --context prod set image a b", True),
        ("prod only via the github action, nobody deploys prod by hand", "kubectl --context prod get pods", False),
        ("Never commit .env or anything from certs/", "git add certs/dev.pem", True),
        ("Never commit .env or anything from certs/", "git add src", False),
        ("never plain pip install, use uv", "cd /tmp && pip install httpie", False),
        ("never terraform apply", "terraform apply --help", False),
    ],
)
def test_commands_that_a_rule_forbids_concern_it(text, command, concerns):
    assert run(text, command) is (Evidence.FORBIDDEN if concerns else None)


def test_checks_before_a_commit_are_asked_for_until_they_ran():
    rule = "before you commit: make lint and make test-fast"
    lint, change = make_action(ActionType.COMMAND, "make lint", 1), make_action(ActionType.EDIT, "a.py", 2)
    assert run(rule, "git commit -am x") is Evidence.REQUIRED
    assert run(rule, "make lint && git commit -am x") is None
    assert run(rule, "git commit -am x", [lint]) is None
    assert run(rule, "git commit -am x", [lint, change]) is Evidence.REQUIRED
    assert run(rule, "git commit --dry-run") is None


def test_a_lesson_is_shown_without_the_option_that_it_asks_for():
    lesson = "helm upgrade of ingress-nginx without --version took the latest chart. Always pin --version 4.9.1."
    assert run(lesson, "helm upgrade ingress-nginx ingress-nginx/ingress-nginx") is Evidence.REQUIRED
    assert run(lesson, "helm upgrade ingress-nginx x --version 4.9.1") is None
    assert run(lesson, "helm upgrade cert-manager jetstack/cert-manager") is None


def test_a_lesson_about_a_problem_is_shown_for_the_same_use():
    lesson = "draining node pool gpu: the pdb of whisper blocks forever"
    assert run(lesson, "kubectl drain -l pool=gpu") is Evidence.COMMAND
    assert run(lesson, "kubectl drain node-cpu-7") is None
    assert run(lesson, "kubectl describe node -l pool=gpu") is None
